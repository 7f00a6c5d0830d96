"""One environment as a `gymnasium.Env`, as the trainer steps it: with its wrappers, frameskip and preprocessing.

`sf.evaluation.play.policy.Policy.make_env` returns one, for loops in Python.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.group import EnvGroup, StepResult
from sf.envs.options import EnvOptions
from sf.envs.registry import describe, make_group
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.observations import obs_arrays
from sf.envs.spaces.reading_back import action_encoder, obs_reader


class SingleEnv(gym.Env):
    """Steps a group of one environment.

    The reward is the learner's, which some environments shape or clip. The `info` of an episode's last step has its
    return and length as `info["episode"]`, {"r": ..., "l": ...}, and its statistics as `info["episode_stats"]`; every
    other is empty. A terminated step returns the first observation of the next episode, and so does the `reset` that
    follows.
    """

    def __init__(self, env_id: str, options: EnvOptions) -> None:
        """Raises UsageError for an environment of several agents, and as `sf.envs.describe` does."""
        spec = describe(env_id, options)
        if spec.num_agents != 1:
            raise UsageError(
                f"{env_id} has {spec.num_agents} agents, and a gymnasium.Env has one: step it with sf.envs.make_group, "
                "see docs/python.md"
            )
        self.observation_space = spec.native_obs_space
        self.action_space = spec.action_space
        self._env_id = env_id
        self._options = options
        self._can_cut = spec.can_cut
        self._read = obs_reader(spec.native_obs_space)
        self._encode = action_encoder(spec.action_space)
        self._arrays = obs_arrays(spec.obs_space, 1)
        self._rows = {key: list(rows) for key, rows in self._arrays.items()}
        self._result = StepResult.empty(1)
        actions = ActionSpec.of(spec.action_space)
        self._nothing = np.zeros(len(actions.discrete_sizes), np.int32), np.zeros(actions.num_continuous, np.float32)
        self._group: EnvGroup | None = None
        self._is_running = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. seed: makes the environment anew, with this one."""
        super().reset(seed=seed)
        if seed is not None or (self._is_running and not self._can_cut):
            self.close()
        if self._group is None:
            drawn = int(self.np_random.integers(2**31))
            self._group = make_group(self._env_id, 1, self._options, seed=drawn, first_env_idx=0)
            self._group.reset(self._rows)
        elif self._is_running:
            self._group.cut(0)  # type: ignore[attr-defined]  # a CuttableGroup
            self._step(self._group, *self._nothing)
        elif not self._result.first[0]:
            self._step(self._group, *self._nothing)
        self._is_running = True
        return self._obs(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._group is None or not self._is_running:
            raise gym.error.ResetNeeded(f"{self._env_id}: call reset() before step()")
        info = self._step(self._group, *self._encode(action))
        terminated, truncated = bool(self._result.terminated[0]), bool(self._result.truncated[0])
        self._is_running = not (terminated or truncated)
        return self._obs(), float(self._result.reward[0]), terminated, truncated, info

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
        self._group = None
        self._is_running = False

    def _step(self, group: EnvGroup, discrete: np.ndarray, continuous: np.ndarray) -> dict[str, Any]:
        """Returns the info."""
        for ended in group.step(discrete[None], continuous[None], self._rows, self._result):
            episode = {"r": ended.episode_return, "l": ended.num_steps}
            return {"episode": episode, "episode_stats": dict(ended.stats)}
        return {}

    def _obs(self) -> Any:
        return self._read({key: rows[0] for key, rows in self._arrays.items()})
