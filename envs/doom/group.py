"""Doom as an environment group: what the registry asks of a task, and games stepped in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import numpy as np

from sf.envs.doom.camera import FilmedGame
from sf.envs.doom.controls import FULL_HEADS, MEASUREMENTS, Head, spaces
from sf.envs.doom.game import DoomEnv, Game, Rows
from sf.envs.doom.matches.match import Match
from sf.envs.doom.matches.stand_ins import BOTS, MatchWithStandIns
from sf.envs.doom.matches.tasks import FRAMESKIP, MATCHES, TICS_PER_S, match_setup, schedulable
from sf.envs.doom.scenarios import SCENARIOS, config_path, find_scenario, remark_on_ignored
from sf.envs.group import EnvSpec, Episode, ObsRows, RenderedGroup, StepResult
from sf.envs.options import EnvOptions
from sf.envs.rendering.film import FilmedGroup

ENV_IDS = (*SCENARIOS, *MATCHES)


def describe(env_id: str, options: EnvOptions) -> EnvSpec:
    """Returns what an actor of `env_id` sees and does. Starts no engine.

    obs: [72, 128, 3] uint8, RGB, channels last. measurements, where the task has them: [23] float32. Of a user's own
    .cfg file also its buffers, see `sf.envs.doom.controls`.
    Raises UsageError for a task whose map is not installed, and for options that do not fit.
    """
    if env_id in MATCHES:
        setup = match_setup(env_id, options)
        heads: tuple[Head, ...] = FULL_HEADS
        obs_space, action_space = spaces(heads, MEASUREMENTS)
        num_agents, frameskip, weights = setup.num_agents, FRAMESKIP, setup.shaping.weights
        limit: int | None = setup.time_limit
        teams, options_of_matches = setup.teams, schedulable(setup)
    else:
        config_path(env_id)
        scenario = find_scenario(env_id)
        heads = scenario.heads
        obs_space, action_space = spaces(heads, scenario.measurements, scenario.buffers)
        num_agents, frameskip, weights = 1, scenario.frameskip, scenario.shaping.weights
        limit = None  # the engine knows it
        teams, options_of_matches = (), {}
    frameskip = options.env_frameskip or frameskip
    return EnvSpec(
        obs_space,
        action_space,
        num_agents,
        frameskip,
        weights if options.doom_shaping else {},
        can_cut=True,
        time_limit=None if limit is None else -(-limit // frameskip),
        action_names=tuple(head.names for head in heads),
        bots=BOTS if num_agents > 1 and not teams else {},
        teams=teams,
        schedulable=options_of_matches,
    )


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> DoomGroup:
    """Start `num_envs` games; game e is seeded by (seed, first_env_idx + e).

    core: the core that the caller has pinned itself to, if it has. Its engines inherit it.
    Raises UsageError as `describe` does, and RuntimeError where an engine does not start.
    """
    spec = describe(env_id, options)
    if env_id not in MATCHES:
        remark_on_ignored(env_id)
    if core is not None:
        # This process and its engines share the core and wake each other. With this policy, which engines inherit,
        # one that is woken lets the other go on until it waits: half the context switches, and 8% less time, a step.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return DoomGroup(spec, _starter(env_id, options, spec), _seeds(num_envs, seed, first_env_idx))


def make_rendered_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int
) -> RenderedGroup:
    """Raises as `make_group` does."""
    spec = describe(env_id, options)
    seeds = _seeds(num_envs, seed, first_env_idx)
    cameras: dict[int, FilmedGame] = {}  # by seed: the games start at once

    def start(seed: int) -> FilmedGame:
        cameras[seed] = FilmedGame(_starter(env_id, options, spec), env_id in MATCHES, seed)
        return cameras[seed]

    return FilmedGroup(DoomGroup(spec, start, seeds), [cameras[seed] for seed in seeds], TICS_PER_S)


def _starter(env_id: str, options: EnvOptions, spec: EnvSpec) -> Callable[..., Game]:
    """Starts a game from its seed of 32 bits, and what makes its engines."""
    if env_id in MATCHES:
        match = MatchWithStandIns if spec.num_agents > 1 else Match
        return partial(match, match_setup(env_id, options), spec.frameskip, options.doom_shaping)
    return partial(DoomEnv, find_scenario(env_id), config_path(env_id), spec.frameskip, options.doom_shaping)


def _seeds(num_envs: int, seed: int, first_env_idx: int) -> list[int]:
    return [int(np.random.SeedSequence((seed, first_env_idx + e)).generate_state(1)[0]) for e in range(num_envs)]


class DoomGroup:
    """A group of one game per seed, which can be cut and shaped. The games take turns: they share a core."""

    def __init__(self, spec: EnvSpec, start: Callable[[int], Game], seeds: list[int]) -> None:
        """start: starts a game, from its seed of 32 bits."""
        self.spec = spec
        self.num_actors = len(seeds) * spec.num_agents
        self._needs_reset = [False] * len(seeds)  # these games are over, or cut: the next step resets them
        with ThreadPoolExecutor(len(seeds)) as threads:  # much of the start of a match is waiting
            starts = [threads.submit(start, seed) for seed in seeds]
        with ExitStack() as started:
            for future in starts:
                if future.exception() is None:
                    started.callback(future.result().close)
            self._games = [future.result() for future in starts]
            self._started = started.pop_all()  # nothing was raised: closing them is up to `close`

    def reset(self, obs: ObsRows) -> None:
        self._needs_reset = [False] * len(self._games)
        for e, game in enumerate(self._games):
            game.reset(self._rows_of(e, obs))

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = []
        choices = discrete.tolist()
        for e, game in enumerate(self._games):
            actors = self._actors_of(e)
            rows = self._rows_of(e, obs)
            is_ignored = self._needs_reset[e] or game.begins_anew(choices[actors])
            rewards: list[float] | float = 0.0
            terminated = truncated = False
            if is_ignored:
                game.reset(rows)
            else:
                rewards, terminated, truncated = game.step(choices[actors], rows)
                if terminated or truncated:
                    episodes += game.episodes(actors.start)
                if terminated:
                    game.reset(rows)
            self._needs_reset[e] = truncated
            result.reward[actors] = rewards
            result.terminated[actors] = terminated
            result.truncated[actors] = truncated
            result.valid[actors] = not is_ignored
            result.first[actors] = terminated or is_ignored
        return episodes

    def cut(self, env_idx: int) -> None:
        self._needs_reset[env_idx] = True

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        self._games[env_idx].set_options(values)

    def set_shaping(self, actor_idx: int, weights: np.ndarray) -> None:
        env_idx, agent_idx = divmod(actor_idx, self.spec.num_agents)
        self._games[env_idx].set_shaping(agent_idx, weights.tolist())

    def close(self) -> None:
        """End all engines. A failure to end one does not keep the others."""
        self._started.close()

    def _actors_of(self, env_idx: int) -> slice:
        return slice(env_idx * self.spec.num_agents, (env_idx + 1) * self.spec.num_agents)

    def _rows_of(self, env_idx: int, obs: ObsRows) -> Rows:
        actors = self._actors_of(env_idx)
        return [{key: rows[n] for key, rows in obs.items()} for n in range(actors.start, actors.stop)]
