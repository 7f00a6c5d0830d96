"""Training by search: the policy learns to choose as searches do, whoever dies meanwhile, and the same each time."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from runs import start, train_here

pytest.importorskip("pyspiel")

from sf import envs, load_policy
from sf.envs import EnvOptions
from sf.envs.errors import UsageError
from sf.evaluation.play.episodes import Play, make_lineups
from sf.evaluation.play.opponents import RandomPlayer
from sf.storage.checkpoint import load_latest

ENV = "openspiel:nim"
FLAGS = ["--algorithm", "search", "--simulations", "16", "--gamma", "1"]
SYNC = [*FLAGS, "--async_rl", "false", "--num_workers", "1", "--num_envs_per_worker", "8", "--batch_size", "64"]


def mean_return(policy, num_episodes=60):
    """Of its most probable moves against random ones."""
    group = envs.make_group(ENV, 4, EnvOptions(), seed=1, first_env_idx=0)
    players = [policy, RandomPlayer(policy.action_spec)]
    going = Play(group, players, make_lineups(2, 2, num_episodes, seed=1), range(4), 4, 1, deterministic=True)
    returns = []
    while not going.is_done:
        returns += [each.episode_return for each in going.step() if each.policy_idx == 0]
    return np.mean(returns)


@pytest.mark.parametrize("root", ["gumbel", "puct"])
def test_a_policy_learns_from_what_searches_find(root, tmp_path):
    flags = ["--num_envs_per_worker", "16", "--learning_rate", "0.003", "--num_epochs", "4", "--search_root", root]
    flags += ["--encoder_mlp_layers", "64", "--batch_size", "256", "--train_for_env_steps", "8000"]
    summary = train_here(tmp_path, *FLAGS, *flags, env=ENV)
    assert summary["env_steps"] >= 8000
    assert mean_return(load_policy(tmp_path / "openspiel_nim")) > 0.6  # as it begins: about 0.2


def test_a_synchronous_run_that_was_stopped_and_resumed_equals_one_process_that_was_not_to_the_bit(tmp_path):
    train_here(tmp_path, *SYNC, "--serial", "true", "--experiment", "at_once", "--train_for_env_steps", "512", env=ENV)
    train_here(tmp_path, *SYNC, "--experiment", "again", "--train_for_env_steps", "512", env=ENV)
    (_, one), (_, other) = (load_latest(tmp_path / name / "checkpoints") for name in ("at_once", "again"))
    assert [key for key in one.tensors if not np.array_equal(one.tensors[key], other.tensors[key])] == []


def test_a_run_goes_on_when_any_of_its_processes_is_killed(tmp_path):
    process = start(tmp_path, *FLAGS, "--env", ENV)
    seen = set()
    for line in process.stdout:
        for role in ("rollout-0", "policy-0", "learner-0"):
            if role not in seen and "frames" in line:
                seen.add(role)
                os.kill(child_of(process.pid, role), signal.SIGKILL)
                break
        else:
            if "frames" in line and len(seen) == 3:
                break
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "saved" in said


def child_of(pid, name):
    """The process of this name below a run."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                command = Path("/proc", entry, "cmdline").read_bytes()
                group = os.getpgid(int(entry))
            except OSError:
                continue
            if group == pid and command.startswith(name.encode()):
                return int(entry)
    raise AssertionError(f"{name} does not run")


@pytest.mark.parametrize(
    "flags",
    [
        ("--env", "CartPole-v1"),
        ("--env", "openspiel:kuhn_poker"),
        ("--core", "gru"),
        ("--num_policies", "2"),
        ("--past_share", "0.5"),
        ("--share_reward", "all"),
    ],
)
def test_what_cannot_be_searched_is_refused(flags, tmp_path):
    with pytest.raises(UsageError):
        train_here(tmp_path, *FLAGS, *flags, env=ENV)
