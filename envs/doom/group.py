"""Single-player Doom as an environment group: what the registry asks of a task, and games stepped in turn."""

from __future__ import annotations

import os
from contextlib import ExitStack

import gymnasium as gym
import numpy as np

from envs.doom.frames import FRAME_SHAPE
from envs.doom.game import DoomEnv
from envs.doom.scenarios import config_path, find_scenario
from envs.group import EnvSpec, Episode, ObsRows, StepResult
from envs.options import EnvOptions


def describe(env_id: str, options: EnvOptions) -> EnvSpec:
    """What an actor of `env_id` sees and does. Starts no engine.

    obs: [72, 128, 3] uint8, RGB, channels last. measurements, where the scenario has them: [23] float32.
    Raises ValueError for an unknown task and for one whose map is not installed.
    """
    config_path(env_id)
    scenario = find_scenario(env_id)
    spaces: dict[str, gym.Space] = {"obs": gym.spaces.Box(0, 255, FRAME_SHAPE, np.uint8)}
    if scenario.measurements:
        shape = (len(scenario.measurements),)
        spaces["measurements"] = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)
    sizes = [len(head.options) for head in scenario.heads]
    return EnvSpec(
        obs_space=gym.spaces.Dict(spaces),
        action_space=gym.spaces.Discrete(sizes[0]) if len(sizes) == 1 else gym.spaces.MultiDiscrete(sizes),
        frameskip=options.env_frameskip or scenario.frameskip,
    )


def make_group(
    env_id: str, num_envs: int, options: EnvOptions, *, seed: int, first_env_idx: int, core: int | None = None
) -> DoomGroup:
    """Start `num_envs` games; game e is seeded by (seed, first_env_idx + e).

    core: the core that the caller has pinned itself to, if it has. Its engines inherit it.
    Raises ValueError as `describe` does, and RuntimeError where an engine does not start.
    """
    spec = describe(env_id, options)
    if core is not None:
        # A process that waits on the core of the one it wakes had better not push that one aside before it
        # waits in turn: with this policy, which engines inherit as well, a step takes half the context
        # switches, 8% less time.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    seeds = [int(np.random.SeedSequence((seed, first_env_idx + e)).generate_state(1)[0]) for e in range(num_envs)]
    return DoomGroup(env_id, spec, options.doom_shaping, seeds)


class DoomGroup:
    """An `envs.group.EnvGroup` of one game per seed. The games take turns: they share a core."""

    def __init__(self, env_id: str, spec: EnvSpec, shaped: bool, seeds: list[int]) -> None:
        """seeds: of 32 bits, one per game."""
        self.spec = spec
        self.num_actors = len(seeds)
        self._truncated = [False] * self.num_actors  # those show their final frame: the next step resets them
        self._envs: list[DoomEnv] = []
        with ExitStack() as started:
            for seed in seeds:
                env = DoomEnv(find_scenario(env_id), config_path(env_id), spec.frameskip, shaped, seed)
                started.callback(env.close)
                self._envs.append(env)
            self._started = started.pop_all()  # nothing was raised: closing them is up to `close`

    def reset(self, obs: ObsRows) -> None:
        self._truncated = [False] * self.num_actors
        for n, env in enumerate(self._envs):
            env.reset({key: rows[n] for key, rows in obs.items()})

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = []
        for n, (env, choices) in enumerate(zip(self._envs, discrete.tolist(), strict=True)):
            rows = {key: rows_of_key[n] for key, rows_of_key in obs.items()}
            was_truncated = self._truncated[n]
            if was_truncated:
                env.reset(rows)
                reward, terminated, truncated = 0.0, False, False
            else:
                reward, terminated, truncated = env.step(choices, rows)
                if terminated or truncated:
                    episodes.append(env.episode(n))
                if terminated:
                    env.reset(rows)
            self._truncated[n] = truncated
            result.reward[n] = reward
            result.terminated[n] = terminated
            result.truncated[n] = truncated
            result.valid[n] = not was_truncated
            result.first[n] = terminated or was_truncated
        return episodes

    def close(self) -> None:
        """End all engines. A failure to end one does not keep the others."""
        self._started.close()
