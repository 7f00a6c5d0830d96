"""Agents of two kinds through the real processes, with a learner that writes down what it is given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kinds_env import LENGTH
from not_training import updater_and_loader
from runs import DEVICE, QUEUES, train_here

from sf.config import Config
from sf.run.lifetime import Run
from sf.run.planning import make_plan
from sf.storage.run_dir import RunDir
from sf.system.processes.reports import LearnerFinished

FIELDS = ("discrete", "continuous", "log_prob", "reward", "terminated")
NUM_AGENTS = 3


def recording_learner(reports, args):
    updater, loader = updater_and_loader(reports, args)
    batch = loader.next()
    policy = updater._optimizer_step.evaluate(batch)[0]
    evaluated = policy.log_prob(batch.discrete, batch.continuous).detach().cpu().numpy()
    records = {name: getattr(batch, name).cpu().numpy() for name in FIELDS}
    records |= {f"obs_{key}": value.cpu().numpy() for key, value in batch.obs.items()}
    np.savez(args.checkpoints / "batch.npz", evaluated=evaluated, **records)
    reports.send(LearnerFinished(0))


def recorded(tmp_path, env):
    """The first batch of a run."""
    config = Config().replace(
        env=f"kinds_env:{env}",
        train_dir=str(tmp_path),
        num_workers=2,
        num_envs_per_worker=4,
        rollout=10,
        batch_size=NUM_AGENTS * 8 * 10,
        device=DEVICE,
        queues=QUEUES,
    )
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name)
    run_dir.prepare(config)
    run_dir.checkpoints_of(0, 1).mkdir(parents=True, exist_ok=True)
    Run(make_plan(config), run_dir, bodies={"learner": recording_learner}).run()
    with np.load(run_dir.checkpoints_of(0, 1) / "batch.npz") as batch:
        return dict(batch)


@pytest.mark.parametrize("env", ["TwoKinds", "Movers"])
def test_what_agents_of_two_kinds_see_and_do_reaches_the_learner(tmp_path, env):
    batch = recorded(tmp_path, env)
    agent = batch["obs_agent_index"].argmax(-1)  # [T+1, B]
    is_speaker = agent == 0
    assert 0 < is_speaker[0].sum() < is_speaker.shape[1]
    assert (agent == agent[0]).all()  # a trajectory is of one agent
    assert (batch["obs_agent_kind"].argmax(-1) == ~is_speaker).all()
    seen = {"TwoKinds": ("obs", "obs"), "Movers": ("ears", "eyes")}[env]
    number = np.where(is_speaker, *(batch[f"obs_{key}"][..., 0] for key in seen))
    assert (number // 10 % 10 == agent + 1).all()  # what the agent itself saw
    assert (number % 10 <= LENGTH).all()
    follows = np.where(batch["terminated"], number[:-1] + 100 - LENGTH + 1, number[:-1] + 1)
    assert (number[1:] == follows).all()
    assert (batch["reward"] == number[:-1] + 1).all()
    if env == "TwoKinds":
        assert (batch["obs_obs"][is_speaker] == number[is_speaker, None] * [1, 1, 0, 0]).all()
    else:
        assert (batch["obs_eyes"][is_speaker] == 0).all()
        assert (batch["obs_ears"][~is_speaker] == 0).all()
        assert (batch["obs_both"][is_speaker] == number[is_speaker, None] * [1, 1, 0]).all()
    acts_as_speaker = is_speaker[:-1]
    assert set(batch["discrete"][..., 0][acts_as_speaker].tolist()) == {0, 1}
    assert batch["discrete"][..., 0][~acts_as_speaker].max() > 1
    assert not batch["discrete"][acts_as_speaker][:, 1:].any()
    assert not batch["continuous"][acts_as_speaker][:, 1:].any()
    if env == "Movers":
        assert batch["continuous"][acts_as_speaker][:, 0].std() > 0
    np.testing.assert_allclose(batch["log_prob"], batch["evaluated"], atol=0.05)
    if env == "TwoKinds":  # a new policy is close to uniform among the choices of each kind
        np.testing.assert_allclose(batch["log_prob"][acts_as_speaker].mean(), -math.log(2), atol=0.3)
        np.testing.assert_allclose(batch["log_prob"][~acts_as_speaker].mean(), -math.log(5), atol=0.3)


def test_a_run_of_two_kinds_trains(tmp_path):
    flags = ["--train_for_env_steps", "400", "--num_batches_per_epoch", "2", "--num_epochs", "2", "--core", "gru"]
    summary = train_here(tmp_path, *flags, "--batch_size", "48", env="kinds_env:Movers")
    assert summary["train/policy_version"] > 4
    assert summary["restarts"] == 0
