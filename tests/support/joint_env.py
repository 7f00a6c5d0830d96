"""A match of three agents whose observations and state say which step of which match they belong to."""

import random

import gymnasium as gym
import numpy as np

MATCH, STEP, AGENT = range(3)  # of an observation; a state has the first two, and three numbers that are made of them
LONGEST = 7
LEAVES_EARLY = "c"


class Joint:
    """PettingZoo's ParallelEnv API. Matches last 4 to 7 steps, and agent c leaves two steps before the end."""

    possible_agents = ("a", "b", LEAVES_EARLY)
    metadata = {}  # noqa: RUF012
    state_space = gym.spaces.Box(-np.inf, np.inf, (5,), np.float64)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self._rng = random.Random()  # not by the seed: no match is like another

    def observation_space(self, agent):
        return gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)

    def action_space(self, agent):
        return gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self._step = list(self.possible_agents), 0
        self._match, self._length = float(self._rng.randrange(1, 2**50)), self._rng.randint(4, LONGEST)
        return self._obs(self.agents), {agent: {} for agent in self.agents}

    def step(self, actions):
        self._step += 1
        played, is_over = self.agents, self._step == self._length
        ended = {agent: is_over or (agent == LEAVES_EARLY and self._step == self._length - 2) for agent in played}
        is_cut = is_over and self._length % 2 == 0
        self.agents = [agent for agent in played if not ended[agent]]
        terminated = {agent: end and not is_cut for agent, end in ended.items()}
        truncated = {agent: end and is_cut for agent, end in ended.items()}
        return self._obs(played), dict.fromkeys(played, 1.0), terminated, truncated, {agent: {} for agent in played}

    def state(self):
        return np.array([self._match, self._step, self._match + 1, self._step + 1, -1.0])

    def close(self):
        pass

    def _obs(self, agents):
        number = self.possible_agents.index
        return {agent: np.array([self._match, self._step, number(agent) + 1.0]) for agent in agents}
