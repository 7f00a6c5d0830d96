"""Environments whose episodes say what they began with."""

from typing import ClassVar

import gymnasium as gym
import numpy as np

LENGTH = 3


class Sized(gym.Env):
    """An episode of `LENGTH` steps, which ends by termination, or by truncation where its size is odd.

    It shows its size and pays it in the last step. told: what it was told, beside None for each reset.
    """

    schedulable: ClassVar = {"size": (1, 9), "wind": (0.0, 1.0)}
    observation_space = gym.spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.told = []
        self._values = {"size": 2, "wind": 0.0}
        self._num_steps = 0

    def set_options(self, values):
        self.told.append(values)
        self._values = {**self._values, **values}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.told.append(None)
        self._num_steps = 0
        self._now = dict(self._values)
        return self._obs(), {}

    def step(self, action):
        self._num_steps += 1
        ends = self._num_steps == LENGTH
        is_odd = self._now["size"] % 2 == 1
        info = {"episode_stats": {"size": self._now["size"]}} if ends else {}
        return self._obs(), float(self._now["size"]) * ends, ends and not is_odd, ends and is_odd, info

    def _obs(self):
        return np.array([self._now["size"], self._now["wind"]], np.float32)


class Leveled(Sized):
    """One of eight levels, of which the last two pay 1 or -1 by chance, and the others 0."""

    schedulable: ClassVar = {}
    levels = 8

    def reset(self, *, seed=None, options=None):
        self._values.setdefault("level", 0)
        return super().reset(seed=seed)

    def step(self, action):
        obs, _, terminated, truncated, info = super().step(action)
        is_hard = self._now["level"] >= self.levels - 2
        if terminated or truncated:
            info = {"episode_stats": {"hard": is_hard}}
        return obs, float(is_hard) * self.np_random.choice((-1.0, 1.0)), terminated, truncated, info


class SizedMatch:
    """Two agents of such an environment, in the manner of PettingZoo."""

    possible_agents: ClassVar = ["a", "b"]
    schedulable = Sized.schedulable
    metadata: ClassVar = {}

    def __init__(self):
        self._env = Sized()
        self.agents = []

    def observation_space(self, agent):
        return Sized.observation_space

    def action_space(self, agent):
        return Sized.action_space

    def set_options(self, values):
        self._env.set_options(values)

    def reset(self, seed=None, options=None):
        obs, _ = self._env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, obs), {agent: {} for agent in self.agents}

    def step(self, actions):
        found = self._env.step(0)
        if found[2] or found[3]:
            self.agents = []
        return tuple(dict.fromkeys(actions, part) for part in found)

    def close(self):
        pass


class SizedVector(gym.vector.VectorEnv):
    """Several of them, of which each is told by its number."""

    metadata: ClassVar = {"autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}
    schedulable = Sized.schedulable
    single_observation_space, single_action_space = Sized.observation_space, Sized.action_space

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self._envs = [Sized() for _ in range(num_envs)]
        self._ended = [False] * num_envs
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)

    def set_options(self, values, env_idx):
        self._envs[env_idx].set_options(values)

    def reset(self, *, seed=None, options=None):
        return np.stack([env.reset()[0] for env in self._envs]), {}

    def step(self, actions):
        found = [
            (env.reset()[0], 0.0, False, False) if ended else env.step(0)[:4]
            for env, ended in zip(self._envs, self._ended, strict=True)
        ]
        obs, rewards, terminated, truncated = map(np.array, zip(*found, strict=True))
        self._ended = (terminated | truncated).tolist()
        return obs, rewards, terminated, truncated, {}
