"""Both players, with PettingZoo's ParallelEnv API."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.rts.arena import Arena
from sf.envs.rts.controls import OBSERVATION
from sf.envs.rts.env import Seeds
from sf.envs.rts.picture import PICTURES_PER_S, Painter
from sf.envs.rts.settings import settings
from sf.envs.spaces.actions import ACTION_MASK

try:
    from pettingzoo import ParallelEnv as _Base
except ImportError:  # it needs none of it
    _Base = object

_ByAgent = dict[str, Any]


class RtsParallelEnv(_Base):
    """A game of `game`, mini or flag, in which both players are asked at once. Further keywords are fields
    of `sf.envs.rts.settings.Settings`, but those for one player against an AI: `opponent` and `curriculum`.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "rts_v0", "render_modes": ["rgb_array"], "render_fps": PICTURES_PER_S, "is_parallelizable": True,
    }  # fmt: skip

    def __init__(self, game: str = "mini", render_mode: str | None = None, **kwargs: Any) -> None:
        """Raises UsageError for a setting that cannot be."""
        if game == "tower":
            raise UsageError("game is 'tower', which has one player: mini or flag")
        if render_mode not in (None, "rgb_array"):
            raise UsageError(f"render_mode is {render_mode!r}: rgb_array or None")
        self.render_mode = render_mode
        self._arena = Arena(settings(game, kwargs, "RtsParallelEnv", num_players=2), [1], 2)
        self.possible_agents = ["player_0", "player_1"]
        self.agents: list[str] = []
        obs_space = self._arena.controls.obs_space(self._arena.settings)
        self.observation_spaces = dict.fromkeys(self.possible_agents, obs_space)
        self.action_spaces = {agent: self._arena.controls.action_space() for agent in self.possible_agents}
        self.action_names = self._arena.controls.action_names
        self._painter = Painter(self._arena.games, None)
        self._seeds = Seeds()

    def observation_space(self, agent: str) -> gym.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[_ByAgent, _ByAgent]:
        if (own := self._seeds.next(seed)) is not None:
            self._arena.seed([own])
        self._arena.begin(np.ones(1, bool))
        self.agents = list(self.possible_agents)
        return self._obs(), {agent: {} for agent in self.agents}

    def step(self, actions: _ByAgent) -> tuple[_ByAgent, _ByAgent, _ByAgent, _ByAgent, _ByAgent]:
        """Raises UsageError for what is no action, and where no game is under way."""
        self._arena.require_game()
        if missing := [agent for agent in self.possible_agents if agent not in actions]:
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
        """As of `RtsEnv`."""
        return self._arena.games.snapshot(0)

    def restore(self, snapshot: bytes) -> _ByAgent:
        """As of `RtsEnv`."""
        self._arena.restore(snapshot)
        self.agents = list(self.possible_agents) if self._arena.games.winner[0] < 0 else []
        return self._obs()

    def close(self) -> None:
        pass

    def _obs(self) -> _ByAgent:
        planes = self._arena.planes[0].copy()
        if not self._arena.controls.has_mask:
            return dict(zip(self.possible_agents, planes, strict=True))
        return {
            agent: {OBSERVATION: planes[player], ACTION_MASK: self._arena.masks[0, player].copy()}
            for player, agent in enumerate(self.possible_agents)
        }
