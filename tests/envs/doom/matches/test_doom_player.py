"""What a player of a match is rewarded for, and what is reported of it, from an engine that is told what happens."""

import numpy as np
import pytest
from scripted_doom import ScriptedEngine

from sf.envs.doom.matches.player import Player
from sf.envs.doom.matches.tasks import match_setup
from sf.envs.options import EnvOptions

EARLIER = {"DEATHCOUNT": 7, "HITCOUNT": 30, "DAMAGECOUNT": 400, "HEALTH": 50}


class Played:
    """A player in an episode that begins with these values and frags."""

    def __init__(self, frags=(0, 0), number=0, is_shaped=True, **values):
        self.engine = ScriptedEngine()
        self.engine.frags = [*frags]
        self.engine.values = {**EARLIER, **values, "PLAYER_NUMBER": number, "FRAGCOUNT": frags[number]}
        self._number = number
        self._obs = {"obs": np.zeros((72, 128, 3), np.uint8), "measurements": np.zeros(23, np.float32)}
        self.player = Player(match_setup("doom_deathmatch", EnvOptions()), is_shaped, 0, lambda: self.engine)
        self.player.begin(self._obs)

    def step(self, frags=None, is_last=False, **values):
        """Returns the reward."""
        self.engine.frags = [*(frags or self.engine.frags)]
        self.engine.values |= {**values, "FRAGCOUNT": self.engine.frags[self._number]}
        return self.player.observe(self._obs, is_last)

    def stats(self, winning_is_objective=True):
        return self.player.episode(0, 1, 2, winning_is_objective).stats


def test_what_is_reported_is_of_the_episode_and_not_of_those_before_it():
    played = Played(frags=(3, 0))
    played.step(frags=(8, 1), DEATHCOUNT=9, HITCOUNT=42, DAMAGECOUNT=530)
    stats = played.stats()
    assert {name: stats[name] for name in ("frags", "deaths", "kd", "hits", "damage")} == {
        "frags": 5,
        "deaths": 2,
        "kd": 2.5,
        "hits": 12,
        "damage": 130,
    }
    assert played.player.frags == 5
    played = Played(frags=(0, 4))  # bots kill each other as they come in
    played.step(frags=(1, 4))
    assert (played.stats()["win"], played.stats()["kd"]) == (1, 1)  # without a death


@pytest.mark.parametrize(
    ("frags", "win", "tie"),
    [((5, 4, 1), 1, 0), ((4, 5, 1), 0, 0), ((4, 1, 5), 0, 0), ((5, 5, 1), 0, 1), ((0, -1, -1), 1, 0)],
)
def test_a_win_is_more_frags_than_everybody_else(frags, win, tie):
    played = Played(frags=(0, 0, 0))
    played.step(frags=frags)
    assert (played.stats()["win"], played.stats()["tie"]) == (win, tie)
    assert played.stats()["true_objective"] == win
    assert played.stats(winning_is_objective=False)["true_objective"] == frags[0]


@pytest.mark.parametrize(
    ("frags", "win", "tie"), [((0, 5, 1, 3), 1, 0), ((4, 0, 3, 2), 0, 0), ((4, 0, 3, 1), 0, 1), ((9, -9, 1, 0), 0, 0)]
)
def test_a_team_wins_by_the_frags_of_its_members(frags, win, tie):
    played = Played(frags=(0, 0, 0, 0))
    played.step(frags=frags)
    stats = played.player.episode(0, 1, 2, True, {0: 0, 1: 0, 2: 1, 3: 1}).stats
    assert (stats["win"], stats["tie"], stats["true_objective"], stats["frags"]) == (win, tie, win, frags[0])


def test_the_frags_of_a_player_are_found_by_its_number():
    played = Played(frags=(0, 0, 0), number=2)
    played.step(frags=(1, 2, 6))
    assert played.stats()["frags"] == 6
    assert played.player.frags_of_all() == {0: 1, 1: 2, 2: 6}


def test_the_last_step_has_no_shaped_reward():
    played = Played()
    assert played.step(frags=(1, 0)) == 1
    assert played.step(frags=(2, 0), is_last=True) == 0
    assert played.stats()["shaped_return"] == 1
    assert played.stats()["frags"] == 2


def test_without_shaping_the_last_step_is_paid_by_its_frags_as_any_other():
    played = Played(is_shaped=False)
    assert played.step(frags=(1, 0), HEALTH=20) == 1
    assert played.step(frags=(0, 0), is_last=True) == -1
