"""The body of a learner: what it begins with, and a minibatch that does not fit onto the GPU."""

from types import SimpleNamespace

import pytest
import torch
from allocated import allocate, learner_args
from recorded_reports import RecordedReports

from sf.config import Config
from sf.learner import worker
from sf.learner.worker import _said_where_nothing_fits
from sf.shared.weights import SharedWeights
from sf.system.processes.child import FinalError


class BegunError(Exception):
    """Takes the place of all that follows."""


def test_a_successor_goes_on_from_the_version_that_was_published_last(tmp_path, monkeypatch):
    def begun(args, published_version, *rest):
        raise BegunError(published_version)

    config = Config().replace(env="toy_identity", num_workers=1, encoder_mlp_layers=(8,), device="cpu", compile=False)
    args = learner_args(allocate(config, tmp_path), predecessor_env_steps=64, num_gradient_workers=0)
    SharedWeights.create(args.weights).publish(torch.zeros(args.weights.num_weights), 7)
    monkeypatch.setattr(worker, "configure", lambda *args, **flags: None)
    monkeypatch.setattr(worker, "LearnerState", begun)
    with pytest.raises(BegunError, match="7"):
        worker.learner(RecordedReports(), args)


FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB\nmore")


def fails(has_trained=False, predecessor_env_steps=None):
    config = Config().replace(batch_size=65536, rollout=32)
    args = SimpleNamespace(config=config, predecessor_env_steps=predecessor_env_steps)
    with _said_where_nothing_fits(args, SimpleNamespace(has_trained=has_trained)):
        raise FULL


def test_the_first_iteration_of_a_run_says_what_to_lower():
    with pytest.raises(FinalError, match=r"65536 samples do not fit .*--batch_size"):
        fails()


@pytest.mark.parametrize("later", [{"has_trained": True}, {"predecessor_env_steps": 0}])
def test_later_another_program_may_be_in_the_way(later):
    with pytest.raises(torch.OutOfMemoryError):
        fails(**later)
