"""What the body of a learner begins with."""

import pytest
import torch
from allocated import allocate, learner_args
from recorded_reports import RecordedReports

from sf.config import Config
from sf.learner import worker
from sf.shared.weights import SharedWeights


class BegunError(Exception):
    """Takes the place of all that follows."""


def test_a_successor_goes_on_from_the_version_that_was_published_last(tmp_path, monkeypatch):
    def begun(args, reports, published_version, *rest):
        raise BegunError(published_version)

    config = Config().replace(env="toy_identity", num_workers=1, encoder_mlp_layers=(8,), device="cpu", compile=False)
    args = learner_args(allocate(config, tmp_path), predecessor_env_steps=64, num_gradient_workers=0)
    SharedWeights.create(args.weights).publish(torch.zeros(args.weights.num_weights), 7)
    monkeypatch.setattr(worker, "configure", lambda *args, **flags: None)
    monkeypatch.setattr(worker, "LearnerState", begun)
    with pytest.raises(BegunError, match="7"):
        worker.learner(RecordedReports(), args)
