"""Masks beside what commands do: what is forbidden would do nothing, and what is allowed does something somewhere."""

from __future__ import annotations

import numpy as np
import pytest
from rts_games import begun, random_choices

from sf.envs.rts.controls import controls
from sf.envs.rts.games import Games


def _mask(games: Games) -> np.ndarray:
    """[L], of player 0"""
    layout, num_players = controls(games.settings), games.num_players
    planes = np.zeros((1, num_players, len(layout.plane_names), 20, 20), np.int8)
    masks = np.zeros((1, num_players, sum(layout.head_sizes)), np.int8)
    games.observe(layout.plane_of, planes, masks)
    return masks[0, 0]


def _after(games: Games, start: bytes, choices: np.ndarray) -> str:
    """choices: [H], of player 0"""
    games.restore(0, start)
    all_choices = np.zeros((1, games.num_players, len(choices)), np.int64)
    all_choices[0, 0] = choices
    games.advance(all_choices, 0)
    games.worlds.units["seen"] = 0  # to look is no effect
    return games.digest(0)


@pytest.mark.parametrize("game", ["mini", "flag", "tower"])
def test_what_a_mask_forbids_does_nothing_and_what_it_allows_does_something_somewhere(game):
    num_players, actions = (1, "global") if game == "tower" else (2, "by_type")
    allowed, effective = set(), set()
    for seed in range(1, 5):
        games, rng = begun(seed, num_players, game=game, actions=actions), np.random.default_rng(seed)
        other, layout = Games(games.settings, [1], num_players), controls(games.settings)
        sizes = layout.head_sizes
        starts = np.cumsum((0, *sizes))
        while games.winner[0] < 0 and games.ticks[0] < 2500:
            mask, before = _mask(games), games.snapshot(0)
            nothing = _after(other, before, np.zeros(len(sizes), np.int64))
            for head, size in enumerate(sizes):
                for choice in range(1, size):
                    name, one = layout.action_names[starts[head] + choice], choice * (np.arange(len(sizes)) == head)
                    if mask[starts[head] + choice]:
                        allowed.add(name)
                    if _after(other, before, one) != nothing:
                        effective.add(name)
                        assert mask[starts[head] + choice], name
            choices = random_choices(games, rng)
            choices[0, 0] = [rng.choice(np.flatnonzero(each)) for each in np.split(mask, starts[1:-1])]
            games.advance(choices, 130)
    never = {name for name in layout.action_names if name.rpartition(":")[2] in ("keep", "idle", "escort_flag")}
    assert allowed - effective <= {"carrier:go_home"}  # whoever takes the flag goes home by itself
    assert allowed == set(layout.action_names) - never
