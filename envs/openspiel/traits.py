"""What random play shows of a game, and spares its matches some calls at each decision."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from sf.envs.openspiel.games import TensorGame

_GAMES = 20
_MOST_DECISIONS = 3000  # that are looked at; a game of chess has some hundreds


class Traits(NamedTuple):
    """looks_alike: every player sees the same tensor. pays_at_end: nobody has won anything before a game is over."""

    looks_alike: bool = False
    pays_at_end: bool = False


def traits_of(tensor_game: TensorGame) -> Traits:
    """By what the game says of itself, and by random play: some games that say that they pay at their ends alone pay
    before."""
    game_type = tensor_game.game.get_type()
    looks_alike = game_type.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    pays_at_end = game_type.reward_model == pyspiel.GameType.RewardModel.TERMINAL
    if not (looks_alike or pays_at_end):
        return Traits()
    rng, observer, players = random.Random(0), tensor_game.make_observer(), range(tensor_game.game.num_players())
    num_decisions = 0
    for _ in range(_GAMES):
        state = tensor_game.game.new_initial_state()
        while not state.is_terminal() and num_decisions < _MOST_DECISIONS:
            pays_at_end = pays_at_end and not any(state.returns())
            if state.is_chance_node():
                state.apply_action(rng.choice(state.chance_outcomes())[0])
                continue
            looks_alike = looks_alike and _are_alike([_seen(observer, state, player) for player in players])
            if state.is_simultaneous_node():
                state.apply_actions([rng.choice(state.legal_actions(player) or [0]) for player in players])
            else:
                state.apply_action(rng.choice(state.legal_actions()))
            num_decisions += 1
    return Traits(looks_alike, pays_at_end)


def _seen(observer: Any, state: Any, player: int) -> np.ndarray:
    observer.set_from(state, player)
    return np.array(observer.tensor)


def _are_alike(tensors: list[np.ndarray]) -> bool:
    return all(np.array_equal(tensors[0], tensor) for tensor in tensors[1:])
