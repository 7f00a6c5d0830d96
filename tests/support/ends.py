"""Environments whose episodes end in every way, and whose observations say where they are from."""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Ends(gym.Env):
    """The observation is [episode, step, action that led here]. Episodes of 1 to 4 steps are terminated, truncated, or
    both at once."""

    observation_space = gym.spaces.Box(-1.0, 2.0**24, (3,), np.float32)
    action_space = gym.spaces.Discrete(4)

    LENGTHS = (3, 1, 4, 1, 2)

    def __init__(self):
        self._episode = -1

    def reset(self, *, seed=None, options=None):
        self._episode += 1
        self._step = 0
        return self._obs(-1), {}

    def step(self, action):
        self._step += 1
        is_over, kind = self._step == self.LENGTHS[self._episode % 5], self._episode % 3
        return self._obs(action), 100.0 * self._episode + self._step, is_over and kind != 1, is_over and kind != 0, {}

    def _obs(self, action):
        return np.array((self._episode, self._step, action), np.float32)


class NextStep(SyncVectorEnv):
    MODE = AutoresetMode.NEXT_STEP

    def __init__(self, num_envs):
        super().__init__([Ends] * num_envs, autoreset_mode=self.MODE)


class SameStep(NextStep):
    MODE = AutoresetMode.SAME_STEP


class Disabled(NextStep):
    MODE = AutoresetMode.DISABLED


class Turns:
    """Three agents in turn, PettingZoo's AECEnv API. In match m agent a leaves after 1 + (a + 2m) % 3 moves, terminated
    or truncated. Each move pays the mover its number in the match, and all others 0.5.

    The observation is [match, moves of all, who moved last, its action].
    """

    possible_agents = (0, 1, 2)
    metadata = {}  # noqa: RUF012

    def __init__(self):
        self._match = -1

    def observation_space(self, agent):
        return gym.spaces.Box(-1.0, 2.0**24, (4,), np.float32)

    def action_space(self, agent):
        return gym.spaces.Discrete(4)

    def reset(self, seed=None, options=None):
        self._match += 1
        self.agents = [*self.possible_agents]
        self.agent_selection = self._match % 3
        self._last, self._num_moves = (-1, -1), 0
        self._moves_left = {agent: 1 + (agent + 2 * self._match) % 3 for agent in self.agents}
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = (dict.fromkeys(self.agents, False) for _ in range(2))
        self.infos = {agent: {} for agent in self.agents}

    def step(self, action):
        agent = self.agent_selection
        self.rewards = dict.fromkeys(self.agents, 0.0)
        following = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        if self.terminations[agent] or self.truncations[agent]:
            assert action is None
            self.agents.remove(agent)
            for of_agents in (self.rewards, self.terminations, self.truncations, self.infos):
                del of_agents[agent]
        else:
            self._num_moves += 1
            self._last = agent, action
            self.rewards = dict.fromkeys(self.agents, 0.5) | {agent: float(self._num_moves)}
            self._moves_left[agent] -= 1
            ends = self._moves_left[agent] == 0
            self.truncations[agent] = ends and self.truncates(self._match, agent)
            self.terminations[agent] = ends and not self.truncates(self._match, agent)
        if self.agents:
            self.agent_selection = following

    @staticmethod
    def truncates(match, agent):
        return (match + agent) % 2 == 1

    def observe(self, agent):
        return np.array((self._match, self._num_moves, *self._last), np.float32)

    def last(self):
        raise AssertionError("it is not called")

    def close(self):
        pass
