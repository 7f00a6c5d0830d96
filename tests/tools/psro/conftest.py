"""Best responses that are not trained: their runs write an untrained network for each policy."""

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
        run_dir.prepare(config)
        num_policies = config.population.num_policies
        for policy_id in range(num_policies):
            saved = untrained("toy_match_rps", seed=len(configs), env_steps=1000)
            saved.state["seconds"] = 3.0
            checkpoint.save(run_dir.checkpoints_of(policy_id, num_policies), saved, 1000, keep=2)
        return {"stopped_by": None}

    monkeypatch.setattr(best_response, "train", train)
    return configs
