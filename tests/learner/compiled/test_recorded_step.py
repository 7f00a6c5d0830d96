"""The optimiser step by recorded kernels: it does what the learner's own does, which is taken where none can be.

Without a GPU a stand-in calls the function again, which shows all but what CUDA does.
"""

import pytest
import torch
from late import devices_that_record, record_on
from small_batches import CASES, DISTANCE, FIRST, FLAGS, KINDS, PICTURES, TASKS, TURNS, T, make_batch

from sf.config import Config
from sf.learner.compiled import recorded_step
from sf.learner.compiled.recorded_step import RecordedStep
from sf.learner.loss.terms import table
from sf.learner.update import Updater
from sf.system import gpu


@pytest.fixture(params=devices_that_record())
def device(request, monkeypatch):
    record_on(request.param, monkeypatch)
    return torch.device(request.param)


def on(device, batch):
    return batch.map(lambda tensor: tensor.to(device))


class Learner:
    """An updater whose steps are recorded, or not."""

    def __init__(self, device, case=FIRST, is_recorded=True, **flags):
        self.space, self.spec, own_flags = CASES[case]
        self.device = device
        self.config = Config().replace(**FLAGS | own_flags | flags)
        self.recorded = RecordedStep(False) if is_recorded else None
        torch.manual_seed(0)
        self.updater = self.new_updater()

    def new_updater(self):
        return Updater(self.config, self.space, self.spec, False, self.device, faster_step=self.recorded)

    def train(self, num_iterations, first_seed=1):
        torch.manual_seed(5)  # of the order of the samples
        for seed in range(first_seed, first_seed + num_iterations):
            batch = make_batch(self.space, self.spec, seed, self.updater.version, self.updater.model.state_size)
            self.updater.train_iteration(on(self.device, batch), 0.1 * seed)

    def weights(self):
        return {name: tensor.clone() for name, tensor in self.updater.model.state_dict().items()}


def assert_same(found, expected):
    for name, tensor in expected.weights().items():
        torch.testing.assert_close(found.weights()[name], tensor, rtol=1e-3, atol=1e-4, msg=name)
    assert found.updater.version == expected.updater.version
    assert found.updater.skipped.total == expected.updater.skipped.total
    means, expected_means = found.updater.pop_metrics(), expected.updater.pop_metrics()
    assert means == pytest.approx(expected_means, rel=1e-2, abs=1e-3, nan_ok=True)


@pytest.mark.parametrize(
    ("case", "flags"),
    [
        (FIRST, {"normalize_returns": False, "value_scale": "symlog", "normalize_advantages_over": "iteration"}),
        (PICTURES, {}),
        (KINDS, {}),
        (TASKS, {}),
        (FIRST, {"core": "gru", "rnn_size": 8}),
        (FIRST, {"core": "mingru", "rnn_size": 8}),
        (FIRST, {"core": "transformer", "rnn_size": 8, "attention_window": 6}),
        (FIRST, {"core": "lstm", "rnn_size": 8, "num_batches_per_epoch": 1, "num_epochs": 1, "batch_size": 6 * T}),
    ],
    ids=str,
)
def test_recorded_steps_do_what_the_learners_own_do(case, flags, device, said):
    recorded, own = Learner(device, case, **flags), Learner(device, case, is_recorded=False, **flags)
    for learner in (recorded, own):
        learner.train(4)
    assert not said
    assert len(recorded.recorded._recorded) == 1
    assert_same(recorded, own)


def test_a_term_that_is_added_to_the_list_is_recorded_with_the_others(device, monkeypatch):
    monkeypatch.setattr(table, "TERMS", [*table.TERMS, DISTANCE])
    recorded, own = Learner(device), Learner(device, is_recorded=False)
    for learner in (recorded, own):
        learner.train(2)
        learner.updater.set_hyperparameters(
            {"value_loss_coeff": 0.1}
        )  # its coefficient, which needs no other recording
        learner.train(2, first_seed=3)
    assert len(recorded.recorded._recorded) == 1
    assert_same(recorded, own)


def test_games_by_turns_need_few_recordings_for_minibatches_of_all_sizes(device, monkeypatch):
    sizes = set()
    size_for = recorded_step._size_for
    monkeypatch.setattr(recorded_step, "_size_for", lambda cut: (sizes.add(len(cut.at)), size_for(cut))[1])
    recorded, own = (Learner(device, TURNS, is_recorded=is_recorded) for is_recorded in (True, False))
    for learner in (recorded, own):
        learner.train(12)
    assert len(sizes) > 4
    assert len(recorded.recorded._recorded) == 2
    assert_same(recorded, own)


def test_there_are_never_many_recordings(device, monkeypatch):
    monkeypatch.setattr(recorded_step, "_size_for", lambda cut: len(cut.at))
    recorded, own = (Learner(device, TURNS, is_recorded=is_recorded) for is_recorded in (True, False))
    for learner in (recorded, own):
        learner.train(12)
    assert len(recorded.recorded._recorded) == recorded_step._MOST
    assert_same(recorded, own)


def test_what_changes_during_a_run_is_followed(device):
    flags = {"core": "gru", "rnn_size": 8, "exploration_loss_coeff_final": 0.0}  # each step makes targets
    learners = [Learner(device, is_recorded=is_recorded, **flags) for is_recorded in (True, False)]
    for learner in learners:
        learner.train(2)
        changed = {"exploration_loss_coeff": 0.1, "ppo_clip_ratio": 0.01, "gamma": 0.5, "reward_scale": 3.0}
        learner.updater.set_hyperparameters({"learning_rate": 0.001, "gae_lambda": 0.5, **changed})
        learner.train(2, first_seed=3)
    before = learners[0].recorded._recorded.copy()
    assert_same(*learners)
    for learner in learners:
        learner.updater.set_hyperparameters({"ppo_clip_value": 0.01})  # a constant of the recording
        learner.train(2, first_seed=5)
    assert_same(*learners)
    assert not set(map(id, before.values())) & set(map(id, learners[0].recorded._recorded.values()))


def test_a_restored_learner_and_one_that_is_rolled_back_go_on(device, said):
    learners = [Learner(device, is_recorded=is_recorded) for is_recorded in (True, False)]
    for learner in learners:
        learner.train(2)
        tensors = {name: tensor.clone() for name, tensor in learner.updater.tensors().items()}
        state = learner.updater.state()
        learner.train(1, first_seed=3)
        learner.updater.load(tensors, state)
        learner.train(1, first_seed=4)
        diverged, learner.updater = learner.updater, learner.new_updater()
        learner.updater.load(tensors, state)
        learner.updater.take_over(diverged, 0.5)
        learner.train(2, first_seed=5)
    assert not said
    assert_same(*learners)


def test_a_step_that_is_not_finite_changes_nothing_and_is_counted(device):
    learner = Learner(device)
    learner.train(1)
    before = learner.weights()
    batch = make_batch(learner.space, learner.spec, 9, learner.updater.version)
    batch.reward.fill_(float("nan"))
    learner.updater.train_iteration(on(device, batch), 0.0)
    assert learner.updater.skipped.total == learner.config.learner.steps_per_iteration
    after = learner.weights()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items() if "normalizer" not in name)


def test_a_recording_that_fails_or_differs_is_one_sentence_and_the_step_is_the_learners_own(device, monkeypatch, said):
    def fail(self, function):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    class Differs:
        def __init__(self, function):
            self._results = function()

        def replay(self):
            return self._results

    for stand_in, reason in (type("Fails", (), {"__init__": fail}), "not permitted"), (Differs, "results differ"):
        monkeypatch.setattr(gpu, "Recording", stand_in)
        said.clear()
        learner = Learner(device)
        learner.train(3)
        assert len(said) == 1
        assert reason in said[0]
        own = Learner(device, is_recorded=False)
        own.train(3)
        assert_same(learner, own)


def test_a_network_that_replaces_its_tensors_is_not_recorded(device, monkeypatch, said):
    numbers = iter(range(1000))
    monkeypatch.setattr(recorded_step, "_places", lambda network, optimizer: [next(numbers)])
    learner, own = Learner(device), Learner(device, is_recorded=False)
    for each in (learner, own):
        each.train(3)
    assert len(said) == 1
    assert "other tensors in the place of its weights" in said[0]
    assert_same(learner, own)


def test_where_there_is_no_memory_the_others_stay_until_they_are_out_of_use(device, monkeypatch, said):
    recording, kind, is_full = gpu.Recording, ["a"], [False]

    def full_or_not(function):
        if is_full[0]:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return recording(function)

    monkeypatch.setattr(gpu, "Recording", full_or_not)
    monkeypatch.setattr(recorded_step, "_kind", lambda cut: kind[0])
    recorded, own = (Learner(device, is_recorded=is_recorded) for is_recorded in (True, False))
    for kind[0], is_full[0], idle, there in (
        ("a", False, 1_000, {"a"}),
        ("b", True, 1_000, {"a"}),  # no memory for it
        ("c", True, 1_000, {"a"}),
        ("b", False, 1_000, {"a"}),  # not tried again
        ("b", False, 1, {"b"}),  # the first is out of use, and goes
    ):
        monkeypatch.setattr(recorded_step, "_IDLE", idle)
        recorded.train(1)
        own.train(1)
        assert set(recorded.recorded._recorded) == there
    (sentence,) = said
    assert sentence == "no memory is left on the GPU to record the learner's step for minibatches of b"
    assert_same(recorded, own)


def test_a_recording_that_is_out_of_use_gives_way(device, monkeypatch):
    monkeypatch.setattr(recorded_step, "_MOST", 1)
    recorded, own = (Learner(device, TURNS, is_recorded=is_recorded) for is_recorded in (True, False))
    (first,) = recorded.train(1) or recorded.recorded._recorded
    sizes = iter(range(10_000, 20_000))
    monkeypatch.setattr(recorded_step, "_kind", lambda cut: f"another {next(sizes)}")  # none of them twice
    own.train(1)
    for idle, may_go in (recorded_step._IDLE, False), (1, True):
        monkeypatch.setattr(recorded_step, "_IDLE", idle)
        recorded.train(1, first_seed=2 + may_go)
        own.train(1, first_seed=2 + may_go)
        assert (first not in recorded.recorded._recorded) == may_go
        assert len(recorded.recorded._recorded) == 1
    assert_same(recorded, own)
