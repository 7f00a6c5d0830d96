"""A group of games: all are stepped by one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np

from sf.envs.entries import describer
from sf.envs.field_types import require
from sf.envs.group import ADVICE, EnvGroup, EnvSpec, Episode, ObsRows, RenderedGroup, StepResult
from sf.envs.options import EnvOptions
from sf.envs.rendering.film import FilmedGroup
from sf.envs.rts.arena import HELP, MOST_HELP, Arena
from sf.envs.rts.controls import OBSERVATION
from sf.envs.rts.engine.ais import ADVISERS
from sf.envs.rts.games import command_of
from sf.envs.rts.picture import PICTURES_PER_S, ArenaCamera
from sf.envs.rts.settings import OPPONENTS, settings
from sf.envs.seeding import env_seed
from sf.envs.spaces.actions import ACTION_MASK

if TYPE_CHECKING:
    from sf.envs.rts.forward import Game, RtsModel

NAMES = {
    "rts_mini": ("mini", 1),
    "rts_mini_match": ("mini", 2),
    "rts_flag": ("flag", 1),
    "rts_flag_match": ("flag", 2),
    "rts_tower": ("tower", 1),
}
"""The game of each name, and how many of its players are asked."""


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> EnvGroup:
    return _make(env_id, num_envs, options, seed, first_env_idx)


describe = describer(make_group)


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """One player's view has fog; of a match there is one view, with all units, until it is shown to one of them."""
    group = _make(env_id, num_envs, options, seed, first_env_idx)
    return FilmedGroup(group, [ArenaCamera(group.arena)], PICTURES_PER_S)


def _make(env_id: str, num_envs: int, options: EnvOptions, seed: int, first_env_idx: int) -> RtsGroup:
    skip = options.env_frameskip
    require(
        skip in (None, 1),
        f"{env_id}: env_frameskip is {skip}: give ticks of a decision as frame_skip in env_kwargs",
    )
    game, num_players = NAMES[env_id]
    seeds = [env_seed(seed, first_env_idx + e) for e in range(num_envs)]
    return RtsGroup(Arena(settings(game, options.kwargs, env_id, num_players), seeds, num_players), options.advice)


class RtsGroup:
    """E games; actor n is player n % P of game n // P. A game that ends begins anew in the same step."""

    def __init__(self, arena: Arena, advice: tuple[str, ...] = ()) -> None:
        """advice: AIs that say at each decision what they would do."""
        self.arena = arena
        controls, self._skip = arena.controls, arena.settings.skip
        obs_space = controls.obs_space(arena.settings)
        if not isinstance(obs_space, gym.spaces.Dict):
            obs_space = gym.spaces.Dict({"obs": obs_space})
        bots = OPPONENTS[arena.settings.game] if arena.num_players > 1 else ()
        advisers = tuple(name for name in OPPONENTS[arena.settings.game] if name in ADVISERS and controls.is_single)
        self._advice = tuple(name for name in advice if name in advisers)
        native = None
        if self._advice:
            said = gym.spaces.Box(0, 1, controls.head_sizes, np.int8)
            obs_space = gym.spaces.Dict({**obs_space.spaces, **{ADVICE + name: said for name in self._advice}})
            native = obs_space
        self.spec = EnvSpec(
            obs_space,
            controls.action_space(),
            num_agents=arena.num_players,
            frameskip=self._skip,
            action_names=controls.names_of_heads(),
            env_obs_space=native,
            can_search=arena.num_players == 1 and controls.is_single,
            hides_state=arena.settings.game != "tower",
            bots={name: command_of(name) for name in bots},
            advisers=advisers,
            schedulable={HELP: (0, MOST_HELP)} if arena.num_players == 1 and OPPONENTS[arena.settings.game] else {},
            teams=tuple(range(arena.num_players)) if arena.num_players > 1 else (),
        )
        self.num_actors = arena.games.num * arena.num_players
        shape = arena.games.num, arena.num_players, len(self._advice)
        self._said, self._are_same = np.zeros(shape, np.int64), np.zeros(shape, bool)
        self._num_same = np.zeros(shape, np.int64)  # in the episode
        self._key = OBSERVATION if controls.has_mask else "obs"
        self._returns = np.zeros(self.num_actors)
        self._num_steps = np.zeros(arena.games.num, np.int64)
        self._began_at = np.zeros(arena.games.num, np.int64)  # tick

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        """See `sf.envs.added.episode_options.ScheduledGroup`."""
        self.arena.set_help(env_idx, int(values[HELP]))

    def reset(self, obs: ObsRows) -> None:
        self.arena.begin(np.ones(self.arena.games.num, bool))
        self._returns[:] = 0.0
        self._num_steps[:] = 0
        self._began_at[:] = self.arena.games.ticks
        self._num_same[:] = 0
        self._write(obs)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        arena, num_players = self.arena, self.arena.num_players
        rewards, ended = arena.step(discrete.reshape(arena.games.num, num_players, -1))
        self._num_steps += 1
        self._returns += rewards.ravel()
        result.reward[:] = rewards.ravel()
        result.terminated[:] = np.repeat(ended, num_players)
        result.first[:] = result.terminated
        result.truncated[:] = False
        result.valid[:] = True
        episodes = []
        if ended.any():
            for n in np.flatnonzero(result.terminated).tolist():
                g, player = divmod(n, num_players)
                num_steps, num_frames = int(self._num_steps[g]), int(arena.games.ticks[g] - self._began_at[g])
                stats = {**arena.stats(g, player), **self._share_of_same(g, player)}
                episodes.append(Episode(n, float(self._returns[n]), num_steps, num_frames, stats))
                self._returns[n] = 0.0
            self._num_steps[ended] = 0
            arena.begin(ended)
            self._began_at[ended] = arena.games.ticks[ended]
        else:
            arena.look()
        self._write(obs)
        return episodes

    def forward_model(self, seed: int) -> RtsModel:
        """See `sf.envs.group.SearchableGroup`."""
        from sf.envs.rts.forward import RtsModel  # noqa: PLC0415  it compiles the engine once more

        arena = self.arena
        return RtsModel(arena.settings, arena.controls, arena.games.worlds.kinds, seed)

    def game(self, env_idx: int) -> Game:
        from sf.envs.rts.forward import Game  # noqa: PLC0415

        return Game(self.arena.games.worlds, env_idx, self.arena.planes[env_idx, 0])

    def _share_of_same(self, g: int, player: int) -> dict[str, float]:
        """Returns the share of decisions in which an AI's command was the one that it gave."""
        num = max(1, int(self._num_steps[g]))
        found = {name: float(self._num_same[g, player, n]) / num for n, name in enumerate(self._advice)}
        self._num_same[g, player] = 0
        return {f"advice_exact_{name}": share for name, share in found.items()}

    def close(self) -> None:
        pass

    def _write(self, obs: ObsRows) -> None:
        for row, planes in zip(
            obs[self._key], self.arena.planes.reshape(self.num_actors, *self.arena.planes.shape[2:]), strict=True
        ):
            row[...] = planes
        if self.arena.controls.has_mask:
            for row, mask in zip(obs[ACTION_MASK], self.arena.masks.reshape(self.num_actors, -1), strict=True):
                row[...] = mask
        if self._advice:
            self.arena.games.advise(self._advice, self._said, self._are_same)
            self._num_same += self._are_same
            for n, name in enumerate(self._advice):
                for row, choice in zip(obs[ADVICE + name], self._said[..., n].ravel(), strict=True):
                    row[...] = 0
                    row[choice] = 1
