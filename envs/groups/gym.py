"""A group of single Gymnasium environments, stepped one after another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from sf.envs.added.episode_options import declared_options, tell_options
from sf.envs.errors import UsageError
from sf.envs.group import EnvSpec, Episode, ObsRows, StepResult, finished_episode
from sf.envs.groups import calls
from sf.envs.groups.forward import CopyingModel, Game
from sf.envs.groups.old_api import as_gymnasium
from sf.envs.seeding import env_seed
from sf.envs.spaces.action_names import action_names
from sf.envs.spaces.actions import decoder, supported_action_space
from sf.envs.spaces.observations import LOOK_EVERY, ObsWriter
from sf.envs.wrappers.layers import has_own_time_limit, layers, time_limit

_REWARD_STAYS = (gym.wrappers.OrderEnforcing, gym.wrappers.PassiveEnvChecker, gym.wrappers.TimeLimit)


class GymGroup:
    """E environments with one agent each; actor n is `envs[n]`.

    An environment may give numbers about a finished episode: the mapping `info["episode_stats"]` of its last
    step becomes `Episode.stats`, see `sf.envs.group.finished_episode`.

    One with a method `set_shaping(weights)`, itself or a wrapper of it, has shaped rewards: its attribute `shaping`, a
    mapping, names their weights. Then this is an `sf.envs.group.ShapedGroup`. One with options for its episodes is an
    `sf.envs.added.episode_options.ScheduledGroup`. One with discrete actions is an `sf.envs.group.SearchableGroup`.
    """

    def __init__(
        self,
        env_id: str,
        envs: Sequence[gym.Env],
        seed: int,
        first_env_idx: int,
        frameskip: int = 1,
        strict_spaces: bool = False,
    ) -> None:
        """frameskip: how often each action is repeated; the rewards of the repetitions are added up.

        Raises UsageError for observation or action spaces that are not supported, for rewards of several objectives,
        and for what has neither Gymnasium's API nor that of gym.
        """
        self._env_id = env_id
        self._envs = [as_gymnasium(env_id, env) for env in envs]
        _require_one_objective(env_id, self._envs[0])
        obs_space = calls.space(env_id, self._envs[0], "observation_space")
        self._writer = ObsWriter(env_id, obs_space, strict_spaces, LOOK_EVERY)
        action_space = supported_action_space(env_id, calls.space(env_id, self._envs[0], "action_space"))
        for env in self._envs[1:]:
            other = supported_action_space(env_id, calls.space(env_id, env, "action_space"))
            if other != action_space:
                raise UsageError(
                    f"{env_id}: one of its environments has the action space {other}, another one {action_space}: give "
                    "it the same one each time that it is made"
                )
        self._decode = decoder(action_space)
        shaping = _shaping(env_id, self._envs[0])
        self._shaping_names = tuple(shaping)
        self.spec = EnvSpec(
            self._writer.space,
            action_space,
            frameskip=frameskip,
            shaping=shaping,
            has_own_time_limit=has_own_time_limit(self._envs[0]),
            can_cut=True,
            can_search=isinstance(action_space, gym.spaces.Discrete),
            time_limit=time_limit(self._envs[0], frameskip),
            env_obs_space=self._writer.env_space,
            layers=layers(self._envs[0]),
            action_names=action_names(self._envs[0], action_space),
            schedulable=declared_options(env_id, self._envs[0]),
        )
        self._options: list[Mapping[str, float]] = [{} for _ in envs]  # of the next episodes
        self.num_actors = len(envs)
        self._seeds = [env_seed(seed, first_env_idx + n) for n in range(len(envs))]
        self._needs_reset = [False] * len(envs)  # truncated by the previous step
        self._seen: list[Any] = [None] * len(envs)  # the last observations
        self._return = [0.0] * len(envs)
        self._num_steps = [0] * len(envs)
        self._num_frames = [0] * len(envs)

    def reset(self, obs: ObsRows) -> None:
        for n in range(self.num_actors):
            self._start_episode(n, obs, seed=self._seeds[n])
            self._writer.check_bounds(obs, n)

    def step(self, discrete: np.ndarray, continuous: np.ndarray, obs: ObsRows, result: StepResult) -> list[Episode]:
        episodes = []
        result.terminated[:] = False
        result.truncated[:] = False
        result.first[:] = False
        result.valid[:] = True
        for n in range(self.num_actors):
            if self._needs_reset[n]:
                self._start_episode(n, obs)
                result.reward[n] = 0.0
                result.valid[n] = False
                result.first[n] = True
                continue
            action = self._decode(discrete[n], continuous[n])
            final_obs, reward, terminated, truncated, info = self._act(n, action)
            result.reward[n] = reward
            if terminated or truncated:
                stats = calls.episode_stats(self._env_id, info)
                episodes.append(finished_episode(n, self._return[n], self._num_steps[n], self._num_frames[n], stats))
            if terminated:
                result.terminated[n] = True
                result.first[n] = True
                self._start_episode(n, obs)
            else:
                result.truncated[n] = truncated
                self._needs_reset[n] = truncated
                self._writer.write(final_obs, obs, n)
        return episodes

    def cut(self, env_idx: int) -> None:
        self._needs_reset[env_idx] = True

    def set_shaping(self, actor_idx: int, weights: np.ndarray) -> None:
        by_name = dict(zip(self._shaping_names, weights.tolist(), strict=True))
        self._envs[actor_idx].get_wrapper_attr("set_shaping")(by_name)

    def set_options(self, env_idx: int, values: Mapping[str, float]) -> None:
        self._options[env_idx] = values

    def forward_model(self, seed: int) -> CopyingModel:
        """See `sf.envs.group.SearchableGroup`."""
        spec = self.spec
        return CopyingModel(self._env_id, spec.native_obs_space, spec.action_space, spec.frameskip, seed)

    def game(self, env_idx: int) -> Game | None:
        return None if self._needs_reset[env_idx] else Game(self._envs[env_idx], self._seen[env_idx])

    def close(self) -> None:
        while self._envs:
            calls.close(self._env_id, self._envs.pop())

    def _act(self, n: int, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info, num_frames = calls.decision(
            self._env_id, self._envs[n], action, self.spec.frameskip
        )
        self._seen[n] = obs
        self._return[n] += reward
        self._num_steps[n] += 1
        self._num_frames[n] += num_frames
        return obs, reward, terminated, truncated, info

    def _start_episode(self, n: int, obs: ObsRows, seed: int | None = None) -> None:
        if self._options[n]:
            tell_options(self._env_id, self._envs[n], self._options[n])
        first_obs = calls.reset(self._env_id, self._envs[n], seed=seed)
        self._writer.write(first_obs, obs, n)
        self._seen[n] = first_obs
        self._needs_reset[n] = False
        self._return[n], self._num_steps[n], self._num_frames[n] = 0.0, 0, 0


def _require_one_objective(env_id: str, env: gym.Env) -> None:
    """Raises UsageError for an environment of mo-gymnasium, unless a wrapper may make one number of its rewards."""
    while isinstance(env, _REWARD_STAYS):
        env = env.env
    shape = getattr(getattr(env, "reward_space", None), "shape", None)
    if shape and math.prod(shape) > 1:
        raise UsageError(
            f"{env_id}: its reward has {math.prod(shape)} objectives: give each a weight, for example with "
            "mo_gymnasium.wrappers.LinearReward, in a function of your own that makes the environment"
        )


def _shaping(env_id: str, env: gym.Env) -> dict[str, float]:
    """The names and first values of the weights of shaped rewards; none where the environment does not shape any."""
    if not env.has_wrapper_attr("set_shaping"):
        return {}
    shaping = env.get_wrapper_attr("shaping") if env.has_wrapper_attr("shaping") else None
    if not isinstance(shaping, Mapping) or not shaping:
        raise UsageError(
            f"{env_id}: it has a method set_shaping, so it must have an attribute `shaping`, too, a mapping of the "
            "names of the weights to their values"
        )
    return {str(name): float(weight) for name, weight in shaping.items()}
