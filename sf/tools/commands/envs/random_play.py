"""An environment stepped with random actions: how fast it is on one core, and what random actions are paid."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from sf import envs
from sf.config.flags.sampler import SamplerConfig
from sf.envs import ActionSpec, EnvOptions, Episode, StepResult
from sf.envs.errors import EnvError
from sf.envs.groups.finite import float_keys, require_finite_obs, require_finite_rewards
from sf.envs.process_guards import keep_standard_streams, keep_working_directory
from sf.envs.spaces.actions import ACTION_MASK, random_actions
from sf.envs.spaces.observations import obs_arrays
from sf.metrics.readable import up_to
from sf.system.machine.cores import PinnedCores, usable_cores


@dataclass(frozen=True)
class RandomPlay:
    """What a time of random actions in one environment came to. Means are over finished episodes."""

    seconds: float
    steps_per_s: float  # decisions of all agents
    frames_per_s: float
    num_episodes: int
    mean_length: float | None
    mean_return: float | None
    time_limit: int | None  # decisions of an episode at most

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def text(self) -> str:
        speed = f"{self.frames_per_s:,.0f} frames/s, {self.steps_per_s:,.0f} steps/s on one core"
        if not self.num_episodes:
            return f"{speed}; no episode ended within {self.seconds:.1f} s{up_to(self.time_limit)}"
        episodes = f"{self.num_episodes:,} episodes of {self.mean_length:,.1f} steps"
        return f"{speed}; {episodes}, with a mean return of {self.mean_return:.4g}"


def play_randomly(env: str, options: EnvOptions, seconds: float) -> RandomPlay:
    """As many environments as a rollout worker steps together, or one where no more can be made in a process.

    Raises what they raise.
    """
    with keep_working_directory(), keep_standard_streams(), _one_core():
        make = partial(envs.make_group, env, options=options, seed=0, first_env_idx=0)
        try:
            group = make(SamplerConfig().num_envs_per_worker // 2)
        except EnvError:
            group = make(1)
        try:
            return _play(env, group, seconds)
        finally:
            group.close()


def _play(env: str, group: envs.EnvGroup, seconds: float) -> RandomPlay:
    rng = np.random.default_rng(0)
    action = ActionSpec.of(group.spec.action_space)
    arrays = obs_arrays(group.spec.obs_space, group.num_actors)
    obs, mask = {key: list(rows) for key, rows in arrays.items()}, arrays.get(ACTION_MASK)
    result = StepResult.empty(group.num_actors)
    episodes: list[Episode] = []
    num_steps = 0
    keys = float_keys(group.spec)
    group.reset(obs)
    require_finite_obs(env, obs, keys)
    start = time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        ended = group.step(*random_actions(rng, action, group.num_actors, mask), obs, result)
        require_finite_rewards(env, result.reward, ended)
        require_finite_obs(env, obs, keys)
        episodes += ended
        num_steps += group.num_actors
    return RandomPlay(
        seconds=taken,
        steps_per_s=num_steps / taken,
        frames_per_s=num_steps * group.spec.frameskip / taken,
        num_episodes=len(episodes),
        mean_length=float(np.mean([each.num_steps for each in episodes])) if episodes else None,
        mean_return=float(np.mean([each.episode_return for each in episodes])) if episodes else None,
        time_limit=group.spec.time_limit,
    )


@contextmanager
def _one_core() -> Iterator[None]:
    """This process and its threads, those of the environment with them, share the core that others use least."""
    before = os.sched_getaffinity(0)
    pinned = PinnedCores(usable_cores(), 1)
    core = pinned.of(0)
    try:
        if core is not None:
            os.sched_setaffinity(0, {core})
        yield
    finally:
        os.sched_setaffinity(0, before)
        pinned.release()
