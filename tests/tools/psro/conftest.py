"""Best responses that are not trained: their runs write an untrained network."""

import pytest
from untrained import untrained

from sf.run.startup.initial_weights import CompleteRunError
from sf.storage import checkpoint
from sf.storage.run_dir import RunDir
from sf.tools.psro import best_response


@pytest.fixture
def trained(monkeypatch):
    """The configurations of the runs."""
    configs = []

    def train(config):
        run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
        if run_dir.checkpoints.exists():
            raise CompleteRunError("the run is finished")
        configs.append(config)
        saved = untrained("toy_match_rps", seed=len(configs), env_steps=1000)
        saved.state["seconds"] = 3.0
        run_dir.prepare(config)
        checkpoint.save(run_dir.checkpoints, saved, 1000, keep=2)
        return {"stopped_by": None}

    monkeypatch.setattr(best_response, "train", train)
    return configs
