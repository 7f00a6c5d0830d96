"""Matches of two agents, each with numbers of its own as scores, that are written to a file as they end."""

import os
import random
import time

import gymnasium as gym
import numpy as np

NUM_STEPS = 4
LARGEST = 2**24  # a whole number that float32 has


class Numbered:
    """PettingZoo's ParallelEnv API. file: gets a line for each match: the time, and the two scores."""

    possible_agents = ("first", "second")
    metadata = {}  # noqa: RUF012

    def __init__(self, file, render_mode=None):
        self._file, self.render_mode = file, render_mode
        self._rng = random.Random()  # not by the seed: no match is like another, in no session

    def observation_space(self, agent):
        return gym.spaces.Box(0.0, 1.0, (2,), np.float32)

    def action_space(self, agent):
        return gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self._step = list(self.possible_agents), 0
        return self._obs(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self._step += 1
        is_over = self._step == NUM_STEPS
        scores = [float(self._rng.randrange(LARGEST)) if is_over else 0.0 for _ in self.agents]
        if is_over:
            line = f"{time.time()} {scores[0]} {scores[1]}\n".encode()
            file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, line)  # whole, whoever else writes
            os.close(file)
        obs, agents = self._obs(), self.agents
        if is_over:
            self.agents = []
        by_agent = dict.fromkeys(agents, is_over)
        infos = {agent: {} for agent in agents}
        return obs, dict(zip(agents, scores, strict=True)), by_agent, dict.fromkeys(agents, False), infos

    def close(self):
        pass

    def _obs(self):
        return {agent: np.array([self._step / NUM_STEPS, 1.0], np.float32) for agent in self.agents}


def first(observation):
    return 0


def second(observation):
    return 1


def one_of_both(observation):
    return random.randrange(2)
