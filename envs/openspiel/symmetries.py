"""The symmetries of a board game, found by playing it: nothing is written down of any game.

A game and its image are played side by side, with random moves. A turn of the board is a symmetry of the game if each
move has a counterpart after which the image looks like the turned board to every player, in all of the games. That
tells the mirror image of connect four from that of chess, where the king stands on one side.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel

from sf.envs.openspiel.games import TensorGame, load
from sf.envs.openspiel.views import OBSERVATION, Views
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.symmetries import UNKNOWN, Symmetry

_GAMES = 20  # in a row that have shown no new move; for each turn, or as many as
_SECONDS = 0.5  # have room for
_BOARD = 3  # the rank of a tensor [C, H, W]


def find(env_id: str, options: EnvOptions) -> list[Symmetry]:
    """Returns the symmetries of this game, beside the one that changes nothing.

    There is none if its tensor is no board, if chance has a part in it, or if players act at once.
    """
    tensor_game = load(env_id, options.kwargs, seed=0)
    game_type = tensor_game.game.get_type()
    is_for_turns = game_type.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    is_certain = game_type.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
    if len(tensor_game.tensor_shape) != _BOARD or not (is_for_turns and is_certain):
        return []
    shape = Views(tensor_game.game.num_players(), tensor_game.tensor_shape).shape
    found = []
    for of_tensor, of_view in zip(_turns(tensor_game.tensor_shape), _turns(shape), strict=True):
        action = _Pair(tensor_game, of_tensor).play()
        if action is not None:
            found.append(Symmetry({OBSERVATION: of_view, ACTION_MASK: _inverse(action)}, action))
    return found


def _turns(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Returns the turns and mirror images of planes [C, H, W] that keep their size, each as indices [C x H x W]."""
    planes = np.arange(np.prod(shape)).reshape(shape)
    for start in (planes, planes[:, :, ::-1]):
        for quarters in range(4):
            turned = np.rot90(start, quarters, axes=(1, 2))
            if turned.shape == shape and not np.array_equal(turned, planes):
                yield turned.reshape(-1)


def _inverse(action: np.ndarray) -> np.ndarray:
    """[A]: which action each is the image of; those that are nobody's stand for what is unknown, in their order."""
    inverse = np.full_like(action, UNKNOWN)
    known = np.flatnonzero(action != UNKNOWN)
    inverse[action[known]] = known
    inverse[inverse == UNKNOWN] = np.flatnonzero(action == UNKNOWN)
    return inverse


class _Pair:
    """A game and its image."""

    def __init__(self, tensor_game: TensorGame, turn: np.ndarray) -> None:
        """turn: indices of the tensor."""
        self._game = tensor_game.game
        self._observer = tensor_game.make_observer()
        self._turn = turn
        self._images: dict[int, int] = {}  # of actions
        self._rng = random.Random(0)

    def play(self) -> np.ndarray | None:
        """Returns [A] what each action becomes; None: it is no symmetry."""
        until = time.monotonic() + _SECONDS
        num_without_news = 0
        while num_without_news < _GAMES:
            num_known = len(self._images)
            if not self._play_once():
                return None
            num_without_news = 0 if len(self._images) > num_known else num_without_news + 1
            if time.monotonic() > until:
                break
        action = np.full(self._game.num_distinct_actions(), UNKNOWN)
        action[list(self._images)] = list(self._images.values())
        return action

    def _play_once(self) -> bool:
        """Returns whether the image kept pace."""
        state, image = self._game.new_initial_state(), self._game.new_initial_state()
        while True:
            if state.current_player() != image.current_player():
                return False
            if not np.array_equal(self._seen(state)[:, self._turn], self._seen(image)):
                return False
            if state.is_terminal():
                return bool(state.returns() == image.returns())
            legal = state.legal_actions()
            if not self._find_images(state, image, legal):
                return False
            action = self._rng.choice(legal)
            state.apply_action(action)
            image.apply_action(self._images[action])

    def _find_images(self, state: Any, image: Any, legal: list[int]) -> bool:
        """Returns whether each legal action has one that is legal in the image, and the other way round."""
        taken = set(self._images.values())
        free = [action for action in image.legal_actions() if action not in taken]
        new = [action for action in legal if action not in self._images]
        by_look = {self._seen(image.child(action)).tobytes(): action for action in free} if new else {}
        if len(free) != len(new) or len(by_look) != len(new):  # several that look the same: nobody knows which it is
            return False
        for action in new:
            found = by_look.pop(self._seen(state.child(action))[:, self._turn].tobytes(), None)
            if found is None:
                return False
            self._images[action] = found
        return {self._images[action] for action in legal} == set(image.legal_actions())

    def _seen(self, state: Any) -> np.ndarray:
        """Returns [P, C x H x W] what each player sees."""
        seen = []
        for player in range(self._game.num_players()):
            self._observer.set_from(state, player)
            seen.append(self._observer.tensor.copy())
        return np.stack(seen)
