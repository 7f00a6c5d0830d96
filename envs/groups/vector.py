"""A natively vectorised environment (`gymnasium.vector.VectorEnv`) as a group.

When an environment that has ended is reset depends on the autoreset mode that the vector environment declares:

- NEXT_STEP: the next `step` resets it and ignores its action, after termination too. That row is not valid.
- SAME_STEP: it is reset at once. After termination this is the rule of a group; after truncation the final
  observation is handed on first, and the environment, which cannot wait, takes the action meant for that row
  as its first. Nobody trains on that row (not valid, reward 0), but its reward counts in the episode's
  return.
- DISABLED: the group resets what ended with `reset(options={"reset_mask": ...})`, and goes on as with
  SAME_STEP.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from sf.envs.added.episode_options import declared_options, tell_options
from sf.envs.errors import ApiError, UsageError
from sf.envs.group import EnvSpec, Episode, ObsRows, StepResult, finished_episode
from sf.envs.groups import calls
from sf.envs.seeding import env_seed
from sf.envs.spaces.actions import decoder, supported_action_space
from sf.envs.spaces.observations import LOOK_EVERY, ObsWriter
from sf.envs.wrappers.layers import has_own_time_limit, layers


def require_num_envs(env_id: str, env: Any, num_envs: int) -> None:
    """Raises UsageError for a vector environment that has another number of environments than it was asked for."""
    if env.num_envs != num_envs:
        raise UsageError(
            f"{env_id}: it has {env.num_envs} environments, and was asked for {num_envs}: make as many as its argument "
            "num_envs says"
        )


def require_single_frames(env_id: str, frameskip: int | None) -> None:
    """Raises UsageError where a vector environment would have to repeat actions."""
    if frameskip not in (None, 1):
        raise UsageError(
            f"{env_id}: env_frameskip is {frameskip}, but a vector environment repeats its actions itself: leave it "
            "out, and give the environment an argument of its own for it in env_kwargs"
        )


class VectorGroup:
    """The environments of one VectorEnv, with one agent each.

    They may give numbers about finished episodes: `infos["episode_stats"]` is a mapping of names to arrays [E] (in the
    mode SAME_STEP in `infos["final_info"]`), as Gymnasium's vector environments make it of the infos of single ones. An
    array of bools `_name` says whose entries of `name` count. See `sf.envs.group.finished_episode`.
    """

    def __init__(
        self,
        env_id: str,
        env: VectorEnv,
        seed: int,
        first_env_idx: int,
        frameskip: int = 1,
        strict_spaces: bool = False,
    ) -> None:
        """frameskip: frames of the simulator for one step of the environment, which repeats actions itself.

        Raises UsageError for an unsupported space, or an environment that does not say how it resets.
        """
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            raise UsageError(
                f"{env_id}: its metadata has no 'autoreset_mode': set it to the "
                "gymnasium.vector.AutoresetMode that says when the vector environment resets"
            )
        self._env_id = env_id
        self._env = env
        self._mode = mode
        self._seed = env_seed(seed, first_env_idx)
        obs_space = calls.space(env_id, env, "single_observation_space")
        self._writer = ObsWriter(env_id, obs_space, strict_spaces, LOOK_EVERY)
        action_space = supported_action_space(env_id, calls.space(env_id, env, "single_action_space"))
        self._decode = decoder(action_space, env.num_envs)
        self.spec = EnvSpec(
            self._writer.space,
            action_space,
            frameskip=frameskip,
            has_own_time_limit=has_own_time_limit(env),
            env_obs_space=self._writer.env_space,
            layers=layers(env),
            schedulable=declared_options(env_id, env),
        )
        self.num_actors = env.num_envs
        self._unchosen = np.zeros(self.num_actors, bool)  # the next action is ignored: a reset is pending
        self._return = np.zeros(self.num_actors)
        self._num_steps = np.zeros(self.num_actors, np.int64)
        self.steps_of_late_first = self._num_steps
        """[E] How many steps an episode has had whose first observation comes one row late."""

    def reset(self, obs: ObsRows) -> None:
        first_obs = calls.reset(self._env_id, self._env, seed=self._seed)
        self._writer.write_batch(first_obs, obs)
        for n in range(self.num_actors):
            self._writer.check_bounds(obs, n)
        self._unchosen[:] = False
        self._return[:] = 0.0
        self._num_steps[:] = 0

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        actions = self._decode(discrete, continuous)
        next_obs, reward, terminated, truncated, infos = calls.step(self._env_id, self._env, actions)
        reward = self._one_per_env("reward", reward, "fiub")
        terminated = self._one_per_env("terminated", terminated, "b")
        truncated = self._one_per_env("truncated", truncated, "b")
        ended = terminated | truncated
        stats = _episode_stats(self._env_id, infos) if ended.any() else {}
        unchosen = self._unchosen
        np.copyto(result.reward, reward, casting="same_kind")
        result.reward[unchosen] = 0.0
        np.logical_not(unchosen, out=result.valid)
        np.logical_and(terminated, result.valid, out=result.terminated)
        np.logical_and(truncated, result.valid & ~terminated, out=result.truncated)

        resets_next = self._mode is AutoresetMode.NEXT_STEP
        stepped = ~unchosen if resets_next else np.ones_like(unchosen)
        self._return += np.where(stepped, reward, 0.0)
        self._num_steps += stepped
        episodes = self._finished_episodes(ended, stats)  # before a reset, which may write over the statistics
        if resets_next:
            result.first[:] = unchosen
            self._writer.write_batch(next_obs, obs)
            self._unchosen = ended
        else:
            if self._mode is AutoresetMode.DISABLED and ended.any():
                infos = {"final_obs": self._unbatched(next_obs)}
                next_obs = calls.reset(self._env_id, self._env, options={"reset_mask": ended})
            np.logical_or(result.terminated, unchosen, out=result.first)
            self._writer.write_batch(next_obs, obs)
            final = infos.get("final_obs") if result.truncated.any() else None
            if isinstance(final, Mapping | tuple):  # batched, as observations are
                final = self._unbatched(final)
            for n in np.flatnonzero(result.truncated):
                if final is None:
                    raise UsageError(
                        f"{self._env_id}: an episode was truncated without infos['final_obs']: a vector "
                        "environment that resets in the same step must return the last observations there"
                    )
                self._writer.write(final[n], obs, int(n))
            self._unchosen = result.truncated.copy()
        return episodes

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        tell_options(self._env_id, self._env, values, env_idx)

    def close(self) -> None:
        calls.close(self._env_id, self._env)

    def _one_per_env(self, name: str, values: Any, kinds: str) -> np.ndarray:
        """Raises ApiError for what numpy would broadcast over the environments, or take for indices of them."""
        array = np.asarray(values)
        if array.shape != (self.num_actors,) or array.dtype.kind not in kinds:
            wanted = "bool" if kinds == "b" else "numbers"
            raise ApiError(
                f"{self._env_id}: {name} came as {array.dtype} of shape {array.shape}: return {wanted} of shape "
                f"({self.num_actors},)"
            )
        return array

    def _finished_episodes(self, ended: np.ndarray, stats: Mapping[str, Any]) -> list[Episode]:
        episodes = []
        for n in np.flatnonzero(ended).tolist():
            num_steps = int(self._num_steps[n])
            num_frames = num_steps * self.spec.frameskip
            own_stats = {
                name: values[n]
                for name, values in stats.items()
                if not name.startswith("_") and stats.get(f"_{name}", ended)[n]
            }
            episodes.append(finished_episode(n, float(self._return[n]), num_steps, num_frames, own_stats))
            self._return[n], self._num_steps[n] = 0.0, 0
        return episodes

    def _unbatched(self, obs: Any) -> list[Any]:
        return deepcopy(list(gym.vector.utils.iterate(self._env.observation_space, obs)))


def _episode_stats(env_id: str, infos: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arrays [E] by name, and their masks, of the episodes that end with this step. Raises ApiError."""
    final = infos.get("final_info", infos)
    stats = final.get("episode_stats", {}) if isinstance(final, Mapping) else final
    if not isinstance(stats, Mapping):
        name = "episode_stats" if isinstance(final, Mapping) else "final_info"
        raise ApiError(
            f"{env_id}: {name} in the infos of a step came as {type(stats).__name__}: return a dict of arrays with an "
            "entry for each environment, as Gymnasium's vector environments do since version 1.0"
        )
    return stats
