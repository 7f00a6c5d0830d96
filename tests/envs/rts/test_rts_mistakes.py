"""Mistakes of a user are UsageErrors that name the setting, the action or the unit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sf.envs import EnvOptions, UsageError, describe
from sf.envs.rts import UNITS, RtsEnv, RtsParallelEnv, Unit

WRONG = {
    "rts_mini": [
        *({"oponent": "simple"}, {"opponent": "flag"}, {"opponent": {"simple": -1}}),
        *({"opponent": {"simple": float("inf")}}, {"opponent": {"simple": 1e308, "random": 1e308}}),
        *({"frame_skip": 0}, {"frame_skip": 10**30}, {"max_ticks": 10**20}, {"room": 10**9}),
        *({"history": 10**6}, {"extra": 10**20}, {"extra": 59}, {"size": 300}, {"actions": "all"}),
        *({"replays": 5}, {"replays": "/proc/here"}, {"replays": "a\0b"}, {"replay": "a\0b"}, {"replay": "no.rts"}),
    ],
    "rts_tower": [{"actions": "by_type"}, {"opponent": "simple"}, {"opponent_frame_skip": 20}],
    "rts_flag": [{"extra": 3}],
    "rts_mini_match": [{"opponent": "simple"}],
}


@pytest.mark.parametrize("env_id", WRONG)
def test_a_setting_that_cannot_be_is_named(env_id):
    for kwargs in WRONG[env_id]:
        with pytest.raises(UsageError, match=next(iter(kwargs))):
            describe(env_id, EnvOptions(env_kwargs=json.dumps(kwargs)))
    with pytest.raises(UsageError, match="frame_skip in env_kwargs"):
        describe(env_id, EnvOptions(env_frameskip=4))


@pytest.mark.parametrize("action", [-2, 9, 2.7, None, [1, 2], "idle", True, [[1], [2, 3]]])
def test_what_is_no_action_is_refused_and_changes_nothing(action):
    env = RtsEnv()
    env.reset(seed=1)
    with pytest.raises(UsageError, match="action is"):
        env.step(action)
    assert env._arena.games.ticks[0] == 0
    for fine in (1, np.int64(1), np.array(1), np.array([1], np.int32)):
        env.step(fine)


def test_what_is_no_action_by_type_or_of_both_players_is_refused():
    env, match = RtsEnv(actions="by_type"), RtsParallelEnv("flag")
    env.reset(seed=1)
    match.reset(seed=1)
    for action in (1, [0] * 9, [0, 0, 0, 0, 5]):
        with pytest.raises(UsageError, match="action is"):
            env.step(action)
    with pytest.raises(UsageError, match="player_1"):
        match.step({"player_0": 1})
    with pytest.raises(UsageError, match="action is 7"):
        match.step({"player_0": 1, "player_1": 7})


@pytest.mark.parametrize(
    "unit",
    [
        *(Unit("scout", made_by="barrack"), Unit("melee_attacker", made_by="barracks"), Unit("scout", hp=0)),
        UNITS[0]._replace(made_by="barracks"),
    ],
)
def test_a_unit_that_the_games_cannot_have_is_named(unit):
    units = (unit, *UNITS[1:]) if unit.name == "worker" else (*UNITS, unit)
    with pytest.raises(UsageError, match=unit.name):
        RtsEnv(units=units, actions="by_type")
