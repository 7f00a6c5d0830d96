"""Each mistake of a user gets a sentence that says what to change."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sf.envs import EnvOptions, UsageError, describe
from sf.envs.rts import UNITS, RtsEnv, RtsParallelEnv, Unit


@pytest.mark.parametrize(
    ("env_id", "kwargs", "sentence"),
    [
        ("rts_mini", {"oponent": "simple"}, "'oponent' is no setting of it: opponent"),
        ("rts_mini", {"opponent": "flag"}, "opponent is 'flag': simple, hit_and_run, random, mixed"),
        ("rts_mini", {"opponent": {"simple": -1}}, "give positive numbers"),
        ("rts_mini", {"opponent": {"simple": float("inf")}}, "give positive numbers"),
        ("rts_mini", {"opponent": {"simple": 1e308, "random": 1e308}}, "give positive numbers up to 1e"),
        ("rts_mini", {"frame_skip": 0}, "frame_skip is 0: an integer of 1 or more"),
        ("rts_mini", {"frame_skip": 10**30}, "at most 1000000"),
        ("rts_mini", {"max_ticks": 10**20}, "at most 1000000"),
        ("rts_mini", {"opponent_frame_skip": 10**20}, "at most 1000000"),
        ("rts_mini", {"curriculum": 10**400}, "at most 1000000000"),
        ("rts_mini", {"room": 10**9}, "at most 4096"),
        ("rts_mini", {"history": 10**6}, "at most 64"),
        ("rts_mini", {"extra": 10**20}, "at most 4096"),
        ("rts_mini", {"extra": 59}, "extra is 59, but room is 64: give room for 65 units"),
        ("rts_flag", {"extra": 3}, "extra is 3, but is for Mini-RTS: leave it out"),
        ("rts_tower", {"extra": 3}, "leave it out"),
        ("rts_mini", {"replays": 5}, "replays is 5: a path"),
        ("rts_mini", {"replays": "/proc/here"}, "no file can be written .*: name a folder"),
        ("rts_mini", {"replays": "a\0b"}, "no file can be written .*: name a folder"),
        ("rts_mini", {"replay": "a\0b"}, "is no replay"),
        ("rts_mini", {"size": 300}, "size is 300: at most 256"),
        ("rts_mini", {"actions": "all"}, "actions is 'all': global or by_type"),
        ("rts_tower", {"actions": "by_type"}, "leave it out"),
        ("rts_tower", {"opponent": "simple"}, "has none: leave it out"),
        ("rts_tower", {"curriculum": 20}, "no AI could help in Tower Defense: leave it out"),
        ("rts_tower", {"opponent_frame_skip": 20}, "nobody commands in Tower Defense: leave it out"),
        ("rts_mini_match", {"opponent": "simple"}, "for one player against an AI"),
        ("rts_flag_match", {"curriculum": 9}, "for one player against an AI"),
        ("rts_mini", {"replay": "nowhere.rts"}, "is no replay"),
    ],
)
def test_a_wrong_setting_gets_a_sentence(env_id, kwargs, sentence):
    with pytest.raises(UsageError, match=sentence):
        describe(env_id, EnvOptions(env_kwargs=json.dumps(kwargs)))


@pytest.mark.parametrize("setting", [{"opponent": "hit_and_run"}, {"curriculum": 10}])
def test_a_match_takes_no_setting_of_one_player(setting):
    with pytest.raises(UsageError, match=r"RtsParallelEnv: .* is for one player against an AI: leave it out"):
        RtsParallelEnv(**setting)


@pytest.mark.parametrize("action", [-2, 9, 2.7, None, [1, 2], "idle", True, [[1], [2, 3]]])
def test_what_is_no_action_gets_a_sentence(action):
    env = RtsEnv()
    env.reset(seed=1)
    with pytest.raises(UsageError, match=r"action is .*: give one of Discrete\(9\)"):
        env.step(action)
    assert env._arena.games.ticks[0] == 0
    for fine in (1, np.int64(1), np.array(1), np.array([1], np.int32)):
        env.step(fine)


def test_what_is_no_action_by_type_or_of_both_players_gets_a_sentence():
    env, match = RtsEnv(actions="by_type"), RtsParallelEnv("flag")
    env.reset(seed=1)
    match.reset(seed=1)
    for action in (1, [0] * 9, [0, 0, 0, 0, 5]):
        with pytest.raises(UsageError, match="give one of MultiDiscrete"):
            env.step(action)
    with pytest.raises(UsageError, match="actions have none of player_1"):
        match.step({"player_0": 1})
    with pytest.raises(UsageError, match="action is 7: give one of"):
        match.step({"player_0": 1, "player_1": 7})


def test_a_match_that_is_over_is_begun_anew_before_the_next_step():
    match = RtsParallelEnv(max_ticks=50)
    for _ in range(2):
        with pytest.raises(UsageError, match="call reset before step"):
            match.step({"player_0": 0, "player_1": 0})
        match.reset(seed=1)
        match.step({"player_0": 0, "player_1": 0})


def test_a_command_of_ones_own_has_a_name_of_its_own():
    with pytest.raises(UsageError, match="a name that no command of the game has"):
        RtsEnv(commands={"idle": lambda world, player: None})


def test_the_frameskip_of_a_simulator_is_named_in_ticks_here():
    with pytest.raises(UsageError, match="frame_skip in env_kwargs"):
        describe("rts_mini", EnvOptions(env_frameskip=4))


def test_a_game_that_does_not_exist_is_not_known():
    with pytest.raises(UsageError, match="is not known"):
        describe("rts_mimi", EnvOptions())


@pytest.mark.parametrize(
    ("unit", "sentence"),
    [
        (Unit("scout", made_by="barrack"), "'scout': made_by is 'barrack': one of"),
        (Unit("melee_attacker", made_by="barracks", is_troop=True), "two rows 'melee_attacker'"),
        (Unit("scout", hp=0), "hp is 0: an integer from 1"),
        (Unit("scout", cost=-50), "cost is -50: an integer from 0"),
        (Unit("scout", build_ticks=2.5), "build_ticks is 2.5: an integer"),
        (Unit("scout", speed=float("nan")), "speed is nan: a number from 0"),
        (Unit("scout", sight=float("inf")), "sight is inf: a number from 0"),
    ],
)
def test_a_unit_that_the_games_cannot_have_gets_a_sentence(unit, sentence):
    with pytest.raises(UsageError, match=sentence):
        RtsEnv(units=(*UNITS, unit), actions="by_type")


def test_a_kind_with_commands_of_its_own_is_no_troop_of_the_barracks():
    with pytest.raises(UsageError, match="unit 'worker': made_by is 'barracks', which is for troops"):
        RtsEnv(units=(UNITS[0]._replace(made_by="barracks"), *UNITS[1:]), actions="by_type")
