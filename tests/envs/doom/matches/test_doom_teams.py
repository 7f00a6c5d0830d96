"""Members of a team cannot hurt each other: two agents that shoot at each other in the real engine."""

import dataclasses
import math

import numpy as np
import pytest
from vizdoom import GameVariable

from sf.envs.doom.controls import FULL_HEADS, MEASUREMENTS, spaces
from sf.envs.doom.matches.match import Match
from sf.envs.doom.matches.tasks import match_setup
from sf.envs.options import EnvOptions

TURNS = [12.5 - 1.25 * option for option in range(21)]  # degrees to the left
WHERE = (GameVariable.POSITION_X, GameVariable.POSITION_Y, GameVariable.ANGLE)


def aimed(own, other):
    """The options of an agent that walks to another one, and shoots where it faces it. own, other: x, y, angle."""
    wanted = math.degrees(math.atan2(other[1] - own[1], other[0] - own[0]))
    off = (wanted - own[2] + 180) % 360 - 180
    return (1, 0, 2, int(abs(off) < 4), 0, 0, min(range(21), key=lambda option: abs(TURNS[option] - off)))


@pytest.mark.parametrize(("teams", "kill"), [((0, 1), True), ((0, 0), False)])
def test_only_players_of_other_teams_kill_each_other(teams, kill):
    setup = match_setup("doom_duel", EnvOptions(doom_map="MAP01", doom_match_s=20))
    match = Match(dataclasses.replace(setup, teams=teams), 2, False, 5)
    try:
        obs_space, _ = spaces(FULL_HEADS, MEASUREMENTS)
        rows = [{key: np.zeros(box.shape, box.dtype) for key, box in obs_space.items()} for _ in range(2)]
        match.reset(rows)
        is_over = False
        while not is_over:
            first, second = ([game.get_game_variable(name) for name in WHERE] for game in match.shown())
            _, _, is_over = match.step([aimed(first, second), aimed(second, first)], rows)
        frags = match.returns()
        deaths = [game.get_game_variable(GameVariable.DEATHCOUNT) for game in match.shown()]
    finally:
        match.close()
    assert sum(deaths) > 0
    kills = sum(frags) + sum(deaths)  # a player that kills itself loses a frag
    assert (kills > 0) == kill
