"""Games of turns through the real processes, with a learner that writes down what it is given."""

from __future__ import annotations

import numpy as np
import pytest
from not_training import updater_and_loader
from runs import DEVICE, QUEUES

from sf.config import Config
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished

FIELDS = ("discrete", "log_prob", "value", "policy_version")


def recording_learner(reports, args):
    _, loader = updater_and_loader(reports, args)
    batch = loader.next()
    records = {name: getattr(batch, name).cpu().numpy() for name in FIELDS}
    np.savez(args.checkpoints / "batch.npz", mask=batch.obs["action_mask"].cpu().numpy()[:-1], **records)
    reports.send(LearnerFinished(0))


def run(tmp_path, bodies=None, **flags):
    """Its summary, and its run directory."""
    config = Config().replace(
        env="masked_env:Nim",
        train_dir=str(tmp_path),
        num_workers=1,
        num_envs_per_worker=4,
        rollout=10,
        device=DEVICE,
        queues=QUEUES,
        **flags,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    run_dir.checkpoints_of(0, 1).mkdir(parents=True, exist_ok=True)
    return Run(make_plan(config), run_dir, bodies=bodies or {}).run(), run_dir


def test_steps_in_which_agents_wait_are_no_env_steps(tmp_path):
    rows_per_update = 4 * 2 * 10  # one trajectory of each agent
    summary, _ = run(
        tmp_path,
        batch_size=rows_per_update,
        num_batches_per_epoch=1,
        num_epochs=1,
        async_rl=False,
        train_for_env_steps=400,
    )
    # Of the two agents of a game one has its turn.
    assert summary["env_steps"] == summary["env_frames"] == 400
    assert summary["train/policy_version"] == 1 + 2 * 400 // rows_per_update


@pytest.mark.parametrize("core", ["none", "gru"])
def test_an_agent_that_waits_is_given_action_0_without_asking_a_network_without_memory(tmp_path, core):
    summary, run_dir = run(tmp_path, bodies={"learner": recording_learner}, core=core, batch_size=40)
    assert summary["restarts"] == 0
    with np.load(run_dir.checkpoints_of(0, 1) / "batch.npz") as batch:
        waits = ~(batch["mask"] > 0).any(-1)  # [T, B]
        assert 0.3 < waits.mean() < 0.7
        assert (batch["policy_version"] == 1).all()
        assert (batch["discrete"][waits] == 0).all()
        assert (batch["log_prob"][waits] == 0).all()
        assert (batch["log_prob"][~waits] < 0).any()
        assert (batch["discrete"][~waits] > 0).any()
        assert (batch["value"][~waits] != 0).all()
        assert (batch["value"][waits] == 0).all() == (core == "none")
