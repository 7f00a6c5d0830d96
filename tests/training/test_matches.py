"""Environments of several agents through the real processes, all agents with one policy."""

from __future__ import annotations

import numpy as np
import pytest
from masked_env import Masked

from sf.config import Config
from sf.envs import EnvOptions, StepResult, make_group
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.guard import GuardedGroup
from sf.envs.toys.matches import CountingMatch
from sf.run.trainer import train

COMMON = {
    "num_workers": 1,
    "num_envs_per_worker": 4,
    "rollout": 8,
    "batch_size": 64,
    "encoder_mlp_layers": (16,),
    "device": "cpu",
    "precision": "float32",
    "learner_threads": 1,
    "summaries_every_sec": 1.0,
}


def trained(tmp_path, env, **flags):
    config = Config().replace(**{**COMMON, "env": env, "train_dir": str(tmp_path), **flags})
    return train(config)


def test_both_players_of_a_zero_sum_game_are_trained_and_reported(tmp_path):
    summary = trained(tmp_path, "toy_match_rps", train_for_env_steps=4000)
    assert summary["env_steps"] >= 4000
    assert summary["env_faults"] == 0
    assert summary["mean_return"] == 0.0  # over as many winners as losers
    assert summary["std_return"] > 0
    shares = [summary[f"stats/{choice}"] for choice in ("rock", "paper", "scissors")]
    assert sum(shares) == pytest.approx(1.0)


def test_agents_that_leave_and_come_back_are_trained_only_where_they_play(tmp_path):
    """In synchronous mode; test_policies.py has every row of the other."""
    kwargs = '{"num_agents": 3, "episodes_per_match": 2}'
    flags = {"core": "gru", "rnn_size": 8, "batch_size": 96, "async_rl": False}
    summary = trained(tmp_path, "toy_match_counting", env_kwargs=kwargs, train_for_env_steps=3000, **flags)
    assert summary["env_faults"] == 0
    assert summary["restarts"] == 0
    assert 1 < summary["mean_episode_steps"] < 7
    assert 0 < summary["train/num_samples"] < 96


@pytest.mark.long
def test_a_match_of_pettingzoo_trains_by_its_id(tmp_path):
    env_id = "pettingzoo:butterfly/knights_archers_zombies_v11"
    summary = trained(tmp_path, env_id, env_kwargs='{"max_cycles": 50}', train_for_env_steps=1000)
    assert summary["env_steps"] >= 1000
    assert summary["env_faults"] == 0
    assert summary["mean_episode_steps"] <= 50


class Breaks(CountingMatch):
    """Raises at its fourth step."""

    num_calls = 0

    def step(self, actions):
        self.num_calls += 1
        if self.num_calls == 4:
            raise RuntimeError("in a match")
        return super().step(actions)


def test_a_match_that_fails_is_made_anew_for_all_its_agents():
    def make(attempt: int) -> ParallelGroup:
        match = Breaks if attempt == 0 else CountingMatch
        return ParallelGroup("breaks", [match(env_idx=10 * attempt), CountingMatch(env_idx=10 * attempt + 1)], 0, 0)

    group = GuardedGroup(make)
    assert group.spec == make_group("toy_match_counting", 1, EnvOptions(), seed=0, first_env_idx=0).spec
    rows = {"obs": list(np.zeros((4, 5), np.float32))}
    result = StepResult.empty(4)
    group.reset(rows)
    for _ in range(3):
        group.step(np.zeros((4, 1), np.int32), np.zeros((4, 0), np.float32), rows, result)
        assert result.valid.any()
    assert group.step(np.zeros((4, 1), np.int32), np.zeros((4, 0), np.float32), rows, result) == []
    assert not result.valid.any()
    assert result.first.all()
    assert [row.astype(int).tolist() for row in rows["obs"]] == [
        [10, 0, 0, 0, -1],
        [10, 1, 0, 0, -1],
        [11, 0, 0, 0, -1],
        [11, 1, 0, 0, -1],
    ]
    [fault] = group.pop_faults()
    assert fault.message == "breaks failed in step(): RuntimeError: in a match"
    group.close()


def test_a_board_game_of_pettingzoo_trains_by_its_id(tmp_path):
    """One in which a forbidden move loses: none is made."""
    summary = trained(tmp_path, "pettingzoo:classic/connect_four_v3", train_for_env_steps=800, core="gru", rnn_size=8)
    assert summary["env_steps"] >= 800
    assert (summary["env_faults"], summary["restarts"]) == (0, 0)
    assert summary["mean_episode_steps"] >= 7  # the moves of both: the first player's fourth is the seventh
    assert (summary["min_return"], summary["max_return"], summary["mean_return"]) == (-1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("game", "kwargs", "num_steps", "best"),
    [
        ("leduc_poker", "{}", 2, 13.0),
        pytest.param("goofspiel", '{"num_cards": 5}', 4, 1.0, marks=pytest.mark.long),
    ],
)
def test_a_game_of_openspiel_trains_by_its_name(tmp_path, game, kwargs, num_steps, best):
    """In turns, and all at once. A forbidden action would be a fault."""
    pytest.importorskip("pyspiel")
    summary = trained(tmp_path, f"openspiel:{game}", env_kwargs=kwargs, train_for_env_steps=2000)
    assert summary["env_steps"] >= 2000
    assert (summary["env_faults"], summary["restarts"]) == (0, 0)
    assert summary["mean_episode_steps"] >= num_steps
    assert summary["mean_return"] == 0.0
    assert 0 < summary["max_return"] == -summary["min_return"] <= best


def test_what_a_mask_forbids_is_never_done_and_what_it_allows_is_learned(tmp_path):
    flags = {"learning_rate": 3e-3, "batch_size": 128, "num_epochs": 4}
    flags |= {"stop_at_return": 0.75 * Masked.BEST_RETURN, "summaries_every_sec": 0.3}
    summary = trained(tmp_path, "masked_env:Masked", train_for_env_steps=40_000, **flags)
    assert (summary["env_faults"], summary["restarts"]) == (0, 0)  # what is forbidden raises
    assert summary["stopped_by"] == "stop_at_return"
