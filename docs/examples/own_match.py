"""An environment of several agents, with PettingZoo's ParallelEnv API; PettingZoo itself is not needed.

python own_match.py --num_policies 2
sf-train --env own_match:Tag
"""

import gymnasium as gym
import numpy as np

from sf import main
from sf.envs import register_parallel_env


@register_parallel_env("tag")
class Tag:
    """On a ring of 12 places, the chaser wins by standing where the runner stands, the runner by lasting 40 steps."""

    possible_agents = ("chaser", "runner")

    def observation_space(self, agent):
        return gym.spaces.Dict(role=gym.spaces.Discrete(2), ahead=gym.spaces.Discrete(12))

    def action_space(self, agent):
        return gym.spaces.Discrete(3)  # back, stay, forward

    def reset(self, seed=None, options=None):
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._ahead = int(self._rng.integers(1, 12))  # of the chaser, where the runner is
        self._num_steps = 0
        return self._obs(), {agent: {} for agent in self.agents}

    def step(self, actions):
        slips = self._rng.random() < 0.3  # the runner stays where it is
        self._ahead = (self._ahead + (0 if slips else actions["runner"] - 1) - (actions["chaser"] - 1)) % 12
        self._num_steps += 1
        caught = self._ahead == 0
        over = caught or self._num_steps == 40  # the runner has won: the match is decided, so it is terminated too
        reward = float(caught) - float(over and not caught)
        acted, self.agents = self.agents, [] if over else self.agents
        infos = {agent: {"episode_stats": {"caught": float(caught)}} if over else {} for agent in acted}
        rewards = {"chaser": reward, "runner": -reward}
        return self._obs(), rewards, dict.fromkeys(acted, over), dict.fromkeys(acted, False), infos

    def _obs(self):
        return {agent: {"role": role, "ahead": self._ahead} for role, agent in enumerate(self.possible_agents)}

    def close(self):
        pass


if __name__ == "__main__":
    main(env="tag", train_for_env_steps=300_000, batch_size=1024, num_epochs=2)
