"""The games for other trainers: one player against an AI (Gymnasium), or both players (PettingZoo)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.field_types import require
from sf.envs.rts.arena import HELP, MOST_HELP, Arena
from sf.envs.rts.engine.units import UNITS, Unit
from sf.envs.rts.picture import PICTURES_PER_S, Painter
from sf.envs.rts.settings import OPPONENTS, settings

try:
    from pettingzoo import ParallelEnv as _ParallelEnv
except ImportError:  # it needs none of it
    _ParallelEnv = object

_ByAgent = dict[str, Any]


class RtsEnv(gym.Env):
    """A game of `game`: mini, flag or tower. Further keywords are fields of `sf.envs.rts.settings.Settings`.

    An episode ends with termination. `info["episode_stats"]` of its last step has `won`: 1, 0, or 0.5 for a draw.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": PICTURES_PER_S}  # noqa: RUF012  Gymnasium's own form

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
        _require_render_mode(render_mode)
        self.render_mode = render_mode
        self._arena = Arena(settings(game, kwargs, "RtsEnv"), [1], 1, units, commands or {})
        self.observation_space = self._arena.controls.obs_space(self._arena.settings)
        self.action_space = self._arena.controls.action_space()
        self.action_names = self._arena.controls.action_names
        self.schedulable = {HELP: (0, MOST_HELP)} if OPPONENTS[game] else {}
        self._painter = Painter(self._arena.games, 0)

    def set_options(self, values: Mapping[str, float]) -> None:
        """See `sf.envs.added.episode_options`."""
        self._arena.set_help(0, int(values[HELP]))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._arena.begin_seeded(seed)
        super().reset(seed=None if seed is None else int(seed))
        return self._arena.seen_by(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Raises UsageError for what is no action, and where no game is under way."""
        self._arena.require_game()
        rewards, ended = self._arena.step(self._arena.controls.choices(action)[np.newaxis, np.newaxis])
        self._arena.look()
        info = {"episode_stats": self._arena.stats(0, 0)} if ended[0] else {}
        return self._arena.seen_by(0), float(rewards[0, 0]), bool(ended[0]), False, info

    def render(self) -> np.ndarray | None:
        return self._painter.draw(0) if self.render_mode is not None else None

    def snapshot(self) -> bytes:
        """Returns the state of the game; `restore` goes on from it to the bit, here or in another like this."""
        return self._arena.games.snapshot(0)

    def restore(self, snapshot: bytes) -> Any:
        """Returns the observation, whose history is empty. A replay that is written later begins here.

        Raises UsageError for what is no snapshot of such a game.
        """
        self._arena.restore(snapshot)
        return self._arena.seen_by(0)


class RtsParallelEnv(_ParallelEnv):
    """A game of `game`, mini or flag, in which both players are asked at once. Further keywords are fields
    of `sf.envs.rts.settings.Settings`, but `opponent`, which is for one player.
    """

    metadata: ClassVar[dict[str, Any]] = {**RtsEnv.metadata, "name": "rts_v0", "is_parallelizable": True}

    def __init__(self, game: str = "mini", render_mode: str | None = None, **kwargs: Any) -> None:
        """Raises UsageError for a setting that cannot be."""
        require(game != "tower", "game is 'tower', which has one player: mini or flag")
        _require_render_mode(render_mode)
        self.render_mode = render_mode
        self._arena = Arena(settings(game, kwargs, "RtsParallelEnv", num_players=2), [1], 2)
        self.possible_agents = ["player_0", "player_1"]
        self.agents: list[str] = []
        obs_space = self._arena.controls.obs_space(self._arena.settings)
        self.observation_spaces = dict.fromkeys(self.possible_agents, obs_space)
        self.action_spaces = {agent: self._arena.controls.action_space() for agent in self.possible_agents}
        self.action_names = self._arena.controls.action_names
        self._painter = Painter(self._arena.games, None)

    def observation_space(self, agent: str) -> gym.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[_ByAgent, _ByAgent]:
        self._arena.begin_seeded(seed)
        self.agents = list(self.possible_agents)
        return self._obs(), {agent: {} for agent in self.agents}

    def step(self, actions: _ByAgent) -> tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent, _ByAgent]:
        """Raises UsageError for what is no action, and where no game is under way."""
        self._arena.require_game()
        missing = [agent for agent in self.possible_agents if agent not in actions]
        if missing:
            raise UsageError(f"actions have none of {missing[0]}: give one of each of {self.possible_agents}")
        choices = np.array([self._arena.controls.choices(actions[agent]) for agent in self.possible_agents])
        rewards, ended = self._arena.step(choices[np.newaxis])
        self._arena.look()
        is_over = bool(ended[0])
        infos: _ByAgent = {agent: {} for agent in self.possible_agents}
        if is_over:
            self.agents = []
            for player, agent in enumerate(self.possible_agents):
                infos[agent]["episode_stats"] = self._arena.stats(0, player)
        paid = {agent: float(rewards[0, player]) for player, agent in enumerate(self.possible_agents)}
        terminations = dict.fromkeys(self.possible_agents, is_over)
        return self._obs(), paid, terminations, dict.fromkeys(self.possible_agents, False), infos

    def render(self) -> np.ndarray | None:
        return self._painter.draw(0) if self.render_mode is not None else None

    def snapshot(self) -> bytes:
        """See `RtsEnv.snapshot`."""
        return self._arena.games.snapshot(0)

    def restore(self, snapshot: bytes) -> _ByAgent:
        """See `RtsEnv.restore`."""
        self._arena.restore(snapshot)
        self.agents = list(self.possible_agents) if self._arena.games.winner[0] < 0 else []
        return self._obs()

    def close(self) -> None:
        pass

    def _obs(self) -> _ByAgent:
        return {agent: self._arena.seen_by(player) for player, agent in enumerate(self.possible_agents)}


def _require_render_mode(render_mode: str | None) -> None:
    require(render_mode in (None, "rgb_array"), f"render_mode is {render_mode!r}: rgb_array or None")
