"""A field that is added to the table of a step reaches the learner's minibatches, by the path of each device."""

from types import SimpleNamespace

import deciding
import numpy as np
import pytest
import torch
from deciding import NUM_ACTORS, ROLLOUT, Deciding, vectors
from late import late_gpu

from sf.learner.batches import batch as batch_module
from sf.learner.batches import buffer as buffer_module
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.batches.loaders import SlotCopier
from sf.learner.batches.minibatches import Cut, Minibatch, Targets
from sf.learner.compiled.training_step import _whole, tensors_of
from sf.policy import inference_batch, transfers
from sf.policy.worker import _Policy
from sf.shared import rows
from sf.shared.rows import StepField, Writer

LOGITS = StepField(
    "logits",
    np.float32,
    Writer.POLICY,
    shape=lambda action: (len(action.discrete_sizes), max(action.discrete_sizes)),
    answer=lambda decision: decision.distribution.log_probs,
)
ABSENT = StepField("absent", np.float32, Writer.ROLLOUT, is_optional=True)


@pytest.fixture(params=["cpu", "cuda:0"])
def device(request, monkeypatch):
    """A GPU is a stand-in that does everything as late as a real one may."""
    gpu = late_gpu()
    for module in (deciding, transfers, inference_batch, batch_module, buffer_module):
        monkeypatch.setattr(module, "gpu", gpu)
    gpu.take(request.param)
    return request.param


def test_a_field_that_is_added_in_one_line_is_written_by_the_policy_worker_and_read_by_the_learner(device, monkeypatch):
    monkeypatch.setattr(rows, "FIELDS", [*rows.FIELDS, LOGITS, ABSENT])
    worker = Deciding(*vectors(), device)
    slots, arrays = np.arange(NUM_ACTORS), worker.rows
    arrays["actor"][:] = slots
    policy = SimpleNamespace(_channel=SimpleNamespace(still_asked=lambda actors, _: actors >= 0), _rows=arrays)
    for policy._version in range(1, ROLLOUT + 1):
        t = np.full(NUM_ACTORS, policy._version - 1)
        answers = worker.decisions.decide(slots, t, slots, t, np.zeros(NUM_ACTORS, np.bool_))
        _Policy._write(policy, slots, t, slots, answers)
    assert "absent" not in rows.step_arrays(arrays)

    own = SimpleNamespace(arrays=arrays, is_own=lambda slots: np.ones(len(slots), bool))
    buffer = BatchBuffer(arrays, NUM_ACTORS, worker.network.state_size, device)
    SlotCopier(own, worker.states, worker.spec).copy(slots.tolist(), buffer.host, 0)
    buffer.send()
    batch = buffer.receive()
    logits = torch.from_numpy(arrays["logits"]).transpose(0, 1)  # [T, B, D, longest head]
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(ROLLOUT, NUM_ACTORS, 2))
    drawn = logits.gather(-1, batch.discrete.long().unsqueeze(-1))
    assert (drawn > -10).all()  # of actions that it gives a probability to
    of_batch = batch.reward
    whole = Minibatch(batch, batch.valid, batch.log_prob, Targets(of_batch, of_batch))
    columns, steps = torch.tensor([2, 0]), torch.tensor([5, 1, NUM_ACTORS + 3])
    assert torch.equal(Cut(whole._replace(targets=None), columns).taken().batch.fields["logits"], logits[:, columns])
    single = logits.flatten(0, 1)[steps][:, None]
    assert torch.equal(Cut(whole, steps).taken().batch.fields["logits"], single)
    of_program = _whole(tensors_of(whole)).batch  # as one trajectory of all steps
    assert torch.equal(of_program.fields["logits"], logits.flatten(0, 1)[:, None])
