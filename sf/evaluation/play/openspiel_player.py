"""A bot of OpenSpiel that searches: `openspiel:mcts:N` is Monte Carlo tree search with N simulations a move.

A search needs the state of the game, and a player sees its tensor alone. In a game of perfect information that is
enough: the player follows the game, and the moves of the others are those that lead to what it sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyspiel

from sf.envs.errors import UsageError
from sf.envs.openspiel.family import PREFIX
from sf.envs.openspiel.games import TensorGame, load
from sf.envs.openspiel.group import OBSERVATION
from sf.envs.openspiel.views import Views
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK
from sf.evaluation.play.player import OneByOne

_MCTS = "mcts"
_EXPLORATION = 2.0  # the constant of UCT, for returns between -1 and 1, as in OpenSpiel's own examples
_MEMORY_MB = 1000  # that one search may take
_MOST_STATES = 100_000  # that are looked at to find the moves of the others
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
        reason = _why_not(self._tensor_game)
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
        followers = [_Follower(self._name, self._tensor_game) for _ in range(num_actors)]

        def act(n: int, rows: Mapping[str, np.ndarray], is_first: bool) -> tuple[np.ndarray, np.ndarray]:
            return np.array([_move(bot, followers[n], rows, is_first, rng)], np.int32), np.zeros(0, np.float32)

        return OneByOne(act)


def _move(
    bot: Any, follower: _Follower, rows: Mapping[str, np.ndarray], is_first: bool, rng: np.random.Generator
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


class _Follower:
    """The state of one game, as one of its players follows it."""

    def __init__(self, name: str, tensor_game: TensorGame) -> None:
        self._name = name
        self._game = tensor_game.game
        self._observer = tensor_game.make_observer()
        self._movers = Views(self._game.num_players(), tensor_game.tensor_shape).by_mover
        self._state: Any = None  # not known until a game begins

    def start(self) -> None:
        self._state = self._game.new_initial_state()

    def look(self, seen: np.ndarray) -> Any:
        """The state that looks like this to its player (a `View.whole`). None: it has not seen how the game began.

        Raises UsageError where none of the states that can follow does.
        """
        if self._state is None:
            return None
        for state in self._that_follow():
            if self._looks_like(state, seen):
                self._state = state
                return state
        raise UsageError(
            f"player {self._name!r}: the bot cannot follow this game, in which chance has too many outcomes, or a "
            "player does not see all: name another player"
        )

    def play(self, action: int) -> None:
        self._state = self._state.child(action)

    def _that_follow(self) -> Iterator[Any]:
        """The present state and those after it, nearest first."""
        yield self._state
        level, num_states = [self._state], 1
        while level:
            following = []
            for state in level:
                for action in state.legal_actions():
                    after = state.child(action)
                    yield after
                    following.append(after)
                    num_states += 1
                    if num_states == _MOST_STATES:
                        return
            level = following

    def _looks_like(self, state: Any, seen: np.ndarray) -> bool:
        """Returns whether it looks so to one of its players, whose seat is among what it sees."""
        for view in self._movers.get(state.current_player(), ()):  # none if the game is over
            self._observer.set_from(state, view.player)
            view.tensor[...] = self._observer.tensor
            if np.array_equal(view.whole, seen):
                return True
        return False


def _why_not(tensor_game: TensorGame) -> str | None:
    """Returns why a search over states cannot play this game, or None if it can."""
    kinds, game_type = pyspiel.GameType, tensor_game.game.get_type()
    if tensor_game.is_in_python:
        return "is written in Python, and the search is for games in C++"
    if game_type.information != kinds.Information.PERFECT_INFORMATION:
        return "hides something from its players, which a search over its states would see"
    if game_type.dynamics != kinds.Dynamics.SEQUENTIAL:
        return "has its players act at once, and the search is for turns"
    if game_type.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        return "draws chance by itself, which a search cannot foresee"
    if game_type.reward_model != kinds.RewardModel.TERMINAL:
        return "pays on the way, and the search counts what is won at the end"
    return None
