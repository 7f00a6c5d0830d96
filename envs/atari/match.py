"""Atari games of several players, PettingZoo's, with the preprocessing that games of one player have.

A player sees what `atari_NAME` shows: 84x84 grey, the brighter of the last two frames, 4 decisions stacked, frameskip
4. All players look at the same screen, so each also sees its seat, `agent_index`. A match begins with 1 to 30 frames of
no action. FIRE is not pressed for anybody, because to serve is part of a match. A lost life ends no episode: a player's
episode ends where it is out of the game. Sticky actions are drawn for each player.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.added.agent_index import AGENT_INDEX
from sf.envs.atari.preprocessing import FRAMESKIP, Resize, require_value
from sf.envs.entries import entry_of_matches
from sf.envs.errors import UsageError
from sf.envs.family import Entry
from sf.envs.group import EnvGroup, EnvSpec, RenderedGroup
from sf.envs.options import EnvOptions
from sf.envs.spaces.identity import Identity

_SEEN = {"img_height", "img_width", "noop_max", "stack_num"}  # arguments of the preprocessing; others are of the game
_SEED_OF_UNSEEDED = 0


def entry_of_atari_matches(make: Callable[..., Any]) -> Entry:
    """Returns the entry of a game that `make(**kwargs)` makes, one of PettingZoo's family atari.

    With `atari_raw` the players see the raw screen of each frame, as PettingZoo has it.
    """

    def chosen(env_id: str, options: EnvOptions) -> tuple[Entry, EnvOptions]:
        if options.atari_raw:
            return entry_of_matches(make), options
        options = replace(options, env_frameskip=options.env_frameskip or FRAMESKIP)
        return entry_of_matches(lambda **kwargs: _make_match(env_id, make, options, kwargs)), options

    def describe(env_id: str, options: EnvOptions) -> EnvSpec:
        entry, options = chosen(env_id, options)
        return entry.describe(env_id, options)

    def make_group(env_id: str, num_envs: int, options: EnvOptions, **place: Any) -> EnvGroup:
        entry, options = chosen(env_id, options)
        return entry.make_group(env_id, num_envs, options, **place)

    def make_rendered_group(env_id: str, num_envs: int, options: EnvOptions, **place: Any) -> RenderedGroup:
        entry, options = chosen(env_id, options)
        assert entry.make_rendered_group is not None
        return entry.make_rendered_group(env_id, num_envs, options, **place)

    return Entry(describe, make_group, make_rendered_group, takes_wrappers=True)


def _make_match(env_id: str, make: Callable[..., Any], options: EnvOptions, kwargs: Mapping[str, Any]) -> AtariMatch:
    """Raises UsageError for an argument that the preprocessing cannot have."""
    seen = {name: value for name, value in kwargs.items() if name in _SEEN}
    for name, value in seen.items():
        require_value(env_id, name, value)
    if "obs_type" in kwargs:
        raise UsageError(
            f"env_kwargs has 'obs_type', which the preprocessing of {env_id} decides: leave it out, or take "
            "--atari_raw true"
        )
    of_game = {name: value for name, value in kwargs.items() if name not in _SEEN}
    # The screens are read here, when they are needed: "ram" spares PettingZoo to read each of them.
    game = make(obs_type="ram", **of_game).unwrapped
    return AtariMatch(game, options.env_frameskip or 1, options.atari_sticky or 0.0, options.atari_clip_rewards, **seen)


class AtariMatch:
    """A `sf.envs.ParallelEnv` whose step is one frame, for a group that repeats each action `frameskip` times.

    What the players see changes with the last of these repetitions, or with the one in which a player leaves: the group
    asks for another action then.
    """

    def __init__(
        self,
        env: Any,
        frameskip: int,
        sticky: float,
        clip_rewards: bool,
        img_height: int = 84,
        img_width: int = 84,
        stack_num: int = 4,
        noop_max: int = 30,
    ) -> None:
        """env: PettingZoo's ParallelAtariEnv. sticky: the probability that a player repeats its previous action in a
        frame. clip_rewards: to [-1, 1], the sum of a decision; the reported return is the score.
        """
        self._env = env
        self._frameskip = frameskip
        self._sticky = sticky
        self._clip_rewards = clip_rewards
        self._noop_max = noop_max
        self._rng = np.random.default_rng(_SEED_OF_UNSEEDED)
        self.possible_agents = list(env.possible_agents)
        self._seats = np.eye(len(self.possible_agents), dtype=np.float32)
        self.agents: list[str] = []
        self.render_mode = env.render_mode
        self.metadata = env.metadata
        width, height = env.ale.getScreenDims()
        self._resize = Resize((height, width), img_height, img_width)
        self._screen_before: np.ndarray | None = None  # of the last frame but one, where it is known
        self._stack = np.zeros((stack_num, img_height, img_width), np.uint8)
        self._num_frames = 0  # of this decision
        self._points: dict[str, float] = {}  # in this decision
        self._score: dict[str, float] = {}
        self._carried_out: dict[str, Any] = {}  # the actions of the last frame
        self._space = gym.spaces.Dict(
            {
                "obs": gym.spaces.Box(0, 255, self._stack.shape, np.uint8),
                AGENT_INDEX: Identity(len(self.possible_agents)),
            }
        )

    def observation_space(self, agent: str) -> gym.Space:
        return self._space

    def action_space(self, agent: str) -> gym.Space:
        space: gym.Space = self._env.action_space(agent)
        return space

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._env.reset(seed=seed)
        for _ in range(self._rng.integers(1, self._noop_max, endpoint=True) if self._noop_max else 0):
            self._env.step({})  # nobody acts
        self.agents = list(self.possible_agents)
        self._screen_before = None
        self._stack = np.zeros_like(self._stack)
        self._num_frames = 0
        self._score = dict.fromkeys(self.agents, 0.0)
        self._carried_out = {}
        self._see()
        return self._observations(self.agents), {}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        played = self.agents
        if self._num_frames == 0:
            self._points = dict.fromkeys(played, 0.0)
        self._carried_out = {agent: self._sticks(agent, action) for agent, action in actions.items()}
        _, points, terminations, truncations, _ = self._env.step(self._carried_out)
        self._num_frames += 1
        rewards = {agent: self._pay(agent, float(points[agent])) for agent in played}
        self.agents = [agent for agent in played if not (terminations[agent] or truncations[agent])]
        if self._num_frames == self._frameskip - 1:
            self._screen_before = self._screen()
        if self._num_frames == self._frameskip or len(self.agents) < len(played):
            self._see()
            self._num_frames = 0
        infos: dict[str, Any] = {agent: {} for agent in played}
        if self._clip_rewards:
            for agent in set(played).difference(self.agents):
                infos[agent] = {"episode_stats": {"raw_return": self._score[agent]}}
        return self._observations(played), rewards, terminations, truncations, infos

    def render(self) -> Any:
        return self._env.render()

    def close(self) -> None:
        self._env.close()

    def _sticks(self, agent: str, action: Any) -> Any:
        """Returns the action, or with the probability of sticky actions the one that was carried out before it."""
        sticks = self._sticky > 0 and self._rng.random() < self._sticky
        return self._carried_out.get(agent, action) if sticks else action

    def _pay(self, agent: str, points: float) -> float:
        """Returns the reward of a frame. Those of a decision add up to its clipped points."""
        before = self._points[agent]
        self._points[agent] = after = before + points
        self._score[agent] += points
        return min(max(after, -1.0), 1.0) - min(max(before, -1.0), 1.0) if self._clip_rewards else points

    def _screen(self) -> np.ndarray:
        """Returns [H, W] uint8, grey."""
        screen: np.ndarray = self._env.ale.getScreenGrayscale()
        return screen[..., 0]

    def _see(self) -> None:
        screen = self._screen()
        if self._screen_before is not None:
            screen = np.maximum(screen, self._screen_before)
            self._screen_before = None
        frame = self._resize(screen)
        self._stack = np.concatenate([self._stack[1:], frame[None]])  # a new one: others may keep the one before

    def _observations(self, agents: list[str]) -> dict[str, Any]:
        number = self.possible_agents.index
        return {agent: {"obs": self._stack, AGENT_INDEX: self._seats[number(agent)]} for agent in agents}
