"""Training by search: the policy learns to choose as searches do, whoever dies meanwhile, and the same each time."""

import functools
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from runs import start, train_here

pytest.importorskip("pyspiel")

from sf import load_policy
from sf.envs.errors import UsageError
from sf.envs.openspiel.forward import OpenSpielModel
from sf.envs.openspiel.games import load
from sf.envs.spaces.observations import obs_arrays
from sf.learner.games.buffer import FILE
from sf.shared.rows import FULLY_SEARCHED, SEARCHED
from sf.storage import checkpoint
from sf.storage.checkpoint import load_latest

ENV = "openspiel:nim"
KWARGS = '{"pile_sizes": "1;2;3"}'
FLAGS = ["--algorithm", "search", "--simulations", "16", "--gamma", "1"]
SYNC = [*FLAGS, "--async_rl", "false", "--num_workers", "1", "--num_envs_per_worker", "8", "--batch_size", "64"]
SYNC += ["--num_epochs", "2", "--lr_schedule", "constant"]


def share_right(policy):
    """Of the positions in which some moves win and others lose, in how many the policy's most probable move wins. None:
    of random moves."""
    game = load(ENV, json.loads(KWARGS), seed=0)
    model, root = OpenSpielModel(ENV, game), game.game.new_initial_state()

    @functools.cache
    def outcome(way):  # for player 0
        state = at(way)
        if state.is_terminal():
            return state.returns()[0]
        following = [outcome((*way, action)) for action in state.legal_actions()]
        return max(following) if state.current_player() == 0 else min(following)

    def at(way):
        state = root.clone()
        for action in way:
            state.apply_action(action)
        return state

    right, ways, seen = [], [()], set()
    while ways:
        way = ways.pop()
        state = at(way)
        if state.is_terminal() or str(state) in seen:
            continue
        seen.add(str(state))
        sign = 1 if state.current_player() == 0 else -1
        wins = {action: sign * outcome((*way, action)) > 0 for action in state.legal_actions()}
        ways += [(*way, action) for action in wins]
        if len({*wins.values()}) == 1:
            continue
        if policy is None:
            right.append(np.mean([*wins.values()]))
            continue
        obs = obs_arrays(policy.flat_obs_space, 1)
        model.begin(0, state)
        model.show([0], [0], obs)
        logits, _ = policy.judged(obs)
        right.append(wins[max(wins, key=lambda action: logits[0][action])])
    return np.mean(right)


@pytest.mark.parametrize("root", ["gumbel", pytest.param("puct", marks=pytest.mark.long)])
def test_a_policy_learns_from_what_searches_find(root, tmp_path):
    flags = ["--env_kwargs", KWARGS, "--num_envs_per_worker", "32", "--search_root", root]
    flags += ["--encoder_mlp_layers", "64", "--learning_rate", "0.003", "--num_epochs", "4"]
    summary = train_here(tmp_path, *FLAGS, *flags, "--train_for_env_steps", "5000", env=ENV)
    assert summary["search/simulations_per_second"] > 0
    assert 0 < summary["search/depth"] < 6  # of at most six moves
    assert 1 < summary["search/leaves_per_request"] <= 32
    assert (summary["search/kept_share"] > 0) == (root == "puct")
    policy = load_policy(tmp_path / "openspiel_nim")
    assert share_right(policy) > share_right(None) + 0.15


def test_a_synchronous_run_equals_one_of_one_process_to_the_bit(tmp_path):
    train_here(tmp_path, *SYNC, "--serial", "true", "--experiment", "at_once", "--train_for_env_steps", "512", env=ENV)
    train_here(tmp_path, *SYNC, "--experiment", "again", "--train_for_env_steps", "512", env=ENV)
    (_, one), (_, other) = (load_latest(tmp_path / name / "checkpoints") for name in ("at_once", "again"))
    assert [key for key in one.tensors if not np.array_equal(one.tensors[key], other.tensors[key])] == []


BUFFER = ["--buffer_games", "200", "--buffer_min_games", "20", "--value_target", "outcome"]


def equal_tensors(tmp_path, *names):
    (_, one), (_, other) = (load_latest(tmp_path / name / "checkpoints") for name in names)
    return [key for key in one.tensors if not np.array_equal(one.tensors[key], other.tensors[key])] == []


def test_a_synchronous_run_with_a_buffer_of_games_is_the_same_each_time(tmp_path):
    ends = ["--train_for_env_steps", "512"]
    train_here(tmp_path, *SYNC, *BUFFER, "--serial", "true", "--experiment", "at_once", *ends, env=ENV)
    summary = train_here(tmp_path, *SYNC, *BUFFER, "--experiment", "again", *ends, env=ENV)
    assert equal_tensors(tmp_path, "at_once", "again")
    assert 20 <= summary["train/search/games"] <= 200
    assert 3 < summary["train/search/samples_per_position"] <= 4


def test_a_run_that_is_resumed_goes_on_with_its_games_and_is_the_same_each_time(tmp_path):
    for name in ("one", "other"):
        flags = [*SYNC, *BUFFER, "--serial", "true", "--experiment", name]
        train_here(tmp_path, *flags, "--train_for_env_steps", "512", env=ENV)
        before = checkpoint.load(tmp_path / name / "checkpoints" / FILE)
        train_here(tmp_path, *flags, "--train_for_env_steps", "640", env=ENV)
        after = checkpoint.load(tmp_path / name / "checkpoints" / FILE)
        assert after.state["counts"]["num_drawn"] > before.state["counts"]["num_drawn"] > 0
        assert after.state["counts"]["end_game"] > before.state["counts"]["end_game"] > 20
    assert equal_tensors(tmp_path, "one", "other")


def test_a_run_without_games_enough_trains_nothing_and_ends(tmp_path):
    flags = [*FLAGS, "--buffer_games", "5000", "--buffer_min_games", "5000", "--train_for_env_steps", "400"]
    summary = train_here(tmp_path, *flags, env=ENV)
    assert summary["env_steps"] >= 400
    assert "train/value_loss" not in summary


@pytest.mark.long
def test_a_policy_learns_from_a_buffer_of_games(tmp_path):
    flags = ["--env_kwargs", KWARGS, "--num_envs_per_worker", "32", "--encoder_mlp_layers", "64"]
    flags += ["--learning_rate", "0.003", *BUFFER, "--train_for_env_steps", "5000"]
    train_here(tmp_path, *FLAGS, *flags, env=ENV)
    assert share_right(load_policy(tmp_path / "openspiel_nim")) > share_right(None) + 0.15


def test_a_share_of_the_moves_is_searched_quickly(tmp_path):
    flags = ["--serial", "true", "--search_full_share", "0.25", "--train_for_env_steps", "512"]
    train_here(tmp_path, *SYNC, *BUFFER, *flags, env=ENV)
    kept = checkpoint.load(tmp_path / "openspiel_nim" / "checkpoints" / FILE).tensors
    assert 0.15 < kept[FULLY_SEARCHED].float().mean() < 0.35
    assert (kept[SEARCHED].max(1).values > -10).all()  # quick searches have found something, too


@pytest.mark.long
def test_players_resign_games_that_they_would_lose(tmp_path):
    flags = ["--serial", "true", "--resign", "true", "--train_for_env_steps", "3000", "--num_epochs", "1"]
    summary = train_here(tmp_path, *SYNC, *BUFFER, *flags, env=ENV)
    assert 0 < summary["search/resigned_share"] < 0.95
    assert summary["search/wrongly_resigned_share"] < 0.3
    assert summary["mean_return"] == pytest.approx(0)


@pytest.mark.parametrize("flags", [(), BUFFER], ids=["trajectories", "games"])
def test_a_run_goes_on_when_any_of_its_processes_is_killed(flags, tmp_path):
    process = start(tmp_path, *FLAGS, *flags, "--env", ENV)
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
                command = Path("/proc", entry, "comm").read_text().strip()
                session = os.getsid(int(entry))
            except OSError:
                continue
            if session == pid and command == name:
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
        ("--value_target", "outcome"),
        ("--env", "openspiel:2048", "--resign", "true"),
        ("--buffer_games", "10", "--buffer_min_games", "20"),
        ("--buffer_games", "100", "--anneal", "gamma=0.9:1@1000"),
    ],
)
def test_what_cannot_be_searched_is_refused(flags, tmp_path):
    with pytest.raises((UsageError, SystemExit)):
        train_here(tmp_path, *FLAGS, *flags, env=ENV)
