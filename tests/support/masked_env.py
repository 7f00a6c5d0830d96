"""An environment that forbids, and one whose agents take turns that raises where it is stepped as it may not be."""

import gymnasium as gym
import numpy as np

SIZES = (4, 3)


class Masked(gym.Env):
    """Two choices, each paid 1 where it is the last one that is allowed. A forbidden one raises."""

    NUM_STEPS = 10
    BEST_RETURN = 2.0 * NUM_STEPS

    observation_space = gym.spaces.Dict(
        allowed=gym.spaces.Box(0.0, 1.0, (sum(SIZES),), np.float32), action_mask=gym.spaces.MultiBinary(sum(SIZES))
    )
    action_space = gym.spaces.MultiDiscrete(SIZES)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._obs(), {}

    def step(self, action):
        reward = 0.0
        for choice, allowed in zip(action, self._masks, strict=True):
            if not allowed[choice]:
                raise RuntimeError(f"{choice} is forbidden by {allowed}")
            reward += choice == np.flatnonzero(allowed)[-1]
        self._step += 1
        return self._obs(), float(reward), self._step == self.NUM_STEPS, False, {}

    def _obs(self):
        self._masks = [self._mask(size) for size in SIZES]
        mask = np.concatenate(self._masks)
        return {"allowed": mask.astype(np.float32), "action_mask": mask}

    def _mask(self, size):
        mask = self.np_random.integers(0, 2, size).astype(np.int8)
        mask[self.np_random.integers(size)] = 1
        return mask


class Nim:
    """A heap; whoever takes the last piece wins. Actions 0 to 2 take 1 to 3 pieces; PettingZoo's AECEnv API.

    masks: where the mask is: "obs", "infos" or "none" (then a move that takes too many takes what there is).
    """

    possible_agents = ("first", "second")
    metadata = {"render_fps": 2}  # noqa: RUF012

    def __init__(self, heap=10, masks="obs", truncate_at=None, render_mode=None):
        self._heap_at_start, self._masks, self._truncate_at, self.render_mode = heap, masks, truncate_at, render_mode
        self.seeds = []

    def observation_space(self, agent):
        box = gym.spaces.Box(0.0, 1000.0, (2,), np.float32)
        return gym.spaces.Dict(heap=box, action_mask=gym.spaces.MultiBinary(3)) if self._masks == "obs" else box

    def action_space(self, agent):
        return gym.spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        self.seeds.append(seed)
        self.agents = list(self.possible_agents)
        self.agent_selection = self.agents[0]
        self.heap, self._num_moves = self._heap_at_start, 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self._write_infos()

    def step(self, action):
        agent = self.agent_selection
        self.rewards = dict.fromkeys(self.agents, 0.0)
        if self.terminations[agent] or self.truncations[agent]:
            assert action is None
            self.agents.remove(agent)
            return
        pieces = action + 1
        assert pieces <= self.heap or self._masks == "none", f"{pieces} of {self.heap}"
        self.heap = max(0, self.heap - pieces)
        self._num_moves += 1
        other = self.possible_agents[1 - self.possible_agents.index(agent)]
        if self.heap == 0:
            self.rewards = {agent: 1.0, other: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)
        elif self._num_moves == self._truncate_at:
            self.truncations = dict.fromkeys(self.agents, True)
        self.agent_selection = other
        self._write_infos()

    def observe(self, agent):
        heap = np.array((self.heap, self.possible_agents.index(agent)), np.float32)
        return {"heap": heap, "action_mask": self._mask()} if self._masks == "obs" else heap

    def last(self):
        agent = self.agent_selection
        return self.observe(agent), 0.0, self.terminations[agent], self.truncations[agent], {}

    def render(self):
        return np.full((40, 60, 3), self.heap, np.uint8)

    def close(self):
        pass

    def _mask(self):
        return np.array([pieces <= self.heap for pieces in (1, 2, 3)], np.int8)

    def _write_infos(self):
        self.infos = {agent: {"action_mask": self._mask()} if self._masks == "infos" else {} for agent in self.agents}
