"""A bot of OpenSpiel that searches: `openspiel:mcts:N` is Monte Carlo tree search with N simulations a move.

It knows the state of a game by following it (`sf.evaluation.play.games.following`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from sf.envs.errors import UsageError
from sf.envs.openspiel.family import PREFIX
from sf.envs.openspiel.games import load, why_unforeseeable
from sf.envs.openspiel.views import OBSERVATION
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK
from sf.evaluation.play.games.following import Follower
from sf.evaluation.play.player import OneByOne

_MCTS = "mcts"
_EXPLORATION = 2.0  # the constant of UCT, for returns between -1 and 1, as in OpenSpiel's own examples
_MEMORY_MB = 1000  # that one search may take
_MOST_SIMULATIONS = 1_000_000_000  # an int in C++


class OpenSpielPlayer:
    """Plays the best move that its search finds. `deterministic` does not reach it."""

    def __init__(self, name: str, env_id: str, options: EnvOptions) -> None:
        """Raises UsageError for a name that is no bot's, and for a game that it cannot play."""
        self._name = name
        kind, _, number = name.removeprefix(PREFIX).partition(":")
        if kind != _MCTS or not number.isdecimal() or not 1 <= int(number[:10]) <= _MOST_SIMULATIONS or number[10:]:
            raise UsageError(
                f"player {name!r}: the bots of OpenSpiel are {PREFIX}{_MCTS}:N, with N simulations a move, at most "
                f"{_MOST_SIMULATIONS:,}: write {PREFIX}{_MCTS}:100"
            )
        if not env_id.startswith(PREFIX):
            raise UsageError(f"player {name!r} plays only games of OpenSpiel, and env is {env_id}: name another player")
        self._num_simulations = int(number)
        self._tensor_game = load(env_id, options.kwargs, seed=0)
        reason = why_unforeseeable(self._tensor_game)
        if self._tensor_game.game.get_type().reward_model != pyspiel.GameType.RewardModel.TERMINAL:
            reason = reason or "pays on the way, and its search counts what is won at the end"
        if reason is not None:
            raise UsageError(f"player {name!r}: {env_id} {reason}: name another player")

    def actors(self, num_actors: int, seed: int) -> OneByOne:
        game = self._tensor_game.game
        seed %= 2**31  # an int in C++
        evaluator = pyspiel.RandomRolloutEvaluator(1, seed)
        is_solver = True  # a subtree whose outcome is proven is not searched again
        bot = pyspiel.MCTSBot(
            game, evaluator, _EXPLORATION, self._num_simulations, _MEMORY_MB, is_solver, seed, verbose=False
        )
        rng = np.random.default_rng(seed)
        followers = [Follower(self._name, self._tensor_game) for _ in range(num_actors)]

        def act(n: int, rows: Mapping[str, np.ndarray], is_first: bool) -> tuple[np.ndarray, np.ndarray]:
            return np.array([_move(bot, followers[n], rows, is_first, rng)], np.int32), np.zeros(0, np.float32)

        return OneByOne(act)


def _move(
    bot: Any, follower: Follower, rows: Mapping[str, np.ndarray], is_first: bool, rng: np.random.Generator
) -> int:
    if is_first:
        follower.start()
    state = follower.look(rows[OBSERVATION])
    mask = rows[ACTION_MASK]
    if not mask.any():  # it is not its turn
        return 0
    if state is None:
        return int(rng.choice(np.flatnonzero(mask)))
    action = int(bot.step(state))
    follower.play(action)
    return action
