"""One player against an AI, with Gymnasium's API."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.rts.arena import Arena
from sf.envs.rts.controls import OBSERVATION
from sf.envs.rts.engine.units import UNITS, Unit
from sf.envs.rts.picture import PICTURES_PER_S, Painter
from sf.envs.rts.settings import settings
from sf.envs.spaces.actions import ACTION_MASK

_LARGEST_SEED = 2**64 - 1


class Seeds:
    """Says which seed a reset begins with: the given one, or at the first reset without one a random one."""

    def __init__(self) -> None:
        self._is_seeded = False

    def next(self, given: int | None) -> int | None:
        """None: random numbers go on. Raises UsageError for what is no seed."""
        if given is None and self._is_seeded:
            return None
        if given is not None and not (isinstance(given, int | np.integer) and 0 <= given <= _LARGEST_SEED):
            raise UsageError(f"seed is {given!r}: an integer from 0 to {_LARGEST_SEED}")
        self._is_seeded = True
        return secrets.randbits(64) if given is None else int(given)


class RtsEnv(gym.Env):
    """A game of `game`: mini, flag or tower. Further keywords are fields of `sf.envs.rts.settings.Settings`.

    An episode ends with termination. `info["episode_stats"]` of its last step has `won`: 1, 0, or 0.5 for a draw.
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": PICTURES_PER_S,
    }

    def __init__(
        self,
        game: str = "mini",
        render_mode: str | None = None,
        units: tuple[Unit, ...] = UNITS,
        commands: Mapping[str, Callable[..., None]] | None = None,
        **kwargs: Any,
    ) -> None:
        """units: another table of units, see `sf.envs.rts.engine.units`.
        commands: more global commands by name, each a compiled function of (world, player) that gives orders.

        Raises UsageError for a setting that cannot be.
        """
        if render_mode not in (None, "rgb_array"):
            raise UsageError(f"render_mode is {render_mode!r}: rgb_array or None")
        self.render_mode = render_mode
        self._arena = Arena(settings(game, kwargs, "RtsEnv"), [1], 1, units, commands or {})
        self.observation_space = self._arena.controls.obs_space(self._arena.settings)
        self.action_space = self._arena.controls.action_space()
        self.action_names = self._arena.controls.action_names
        self._painter = Painter(self._arena.games, 0)
        self._seeds = Seeds()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if (own := self._seeds.next(seed)) is not None:
            self._arena.seed([own])
        super().reset(seed=None if seed is None else int(seed))
        self._arena.begin(np.ones(1, bool))
        return self._obs(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Raises UsageError for what is no action, and where no game is under way."""
        self._arena.require_game()
        rewards, ended = self._arena.step(self._arena.controls.choices(action)[np.newaxis, np.newaxis])
        self._arena.look()
        info = {"episode_stats": self._arena.stats(0, 0)} if ended[0] else {}
        return self._obs(), float(rewards[0, 0]), bool(ended[0]), False, info

    def render(self) -> np.ndarray | None:
        return self._painter.draw(0) if self.render_mode is not None else None

    def snapshot(self) -> bytes:
        """The state of the game; `restore` goes on from it to the bit, here or in another environment like this."""
        return self._arena.games.snapshot(0)

    def restore(self, snapshot: bytes) -> Any:
        """Returns the observation, whose history is empty. A replay that is written later begins here.

        Raises UsageError for what is no snapshot of such a game.
        """
        self._arena.restore(snapshot)
        return self._obs()

    def _obs(self) -> Any:
        planes = self._arena.planes[0, 0].copy()
        if not self._arena.controls.has_mask:
            return planes
        return {OBSERVATION: planes, ACTION_MASK: self._arena.masks[0, 0].copy()}
