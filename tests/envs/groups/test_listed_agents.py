"""Environments with `is_multiagent`, `num_agents` and lists, as Sample Factory has them."""

import gymnasium as gym
import numpy as np
from group_driver import play

from sf.envs import EnvOptions, make_group, register_env


class Listed(gym.Env):
    """Three agents whose episodes end together after 4 steps; it begins anew by itself then."""

    is_multiagent, num_agents = True, 3
    observation_space = gym.spaces.Box(0, 100, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._obs(), [{}] * 3

    def step(self, actions):
        assert len(actions) == 3
        self._step += 1
        ended = self._step == 4
        infos = [{"true_objective": 7.0, "episode_extra_stats": {"kills": float(agent)}} for agent in range(3)]
        rewards = [float(agent) for agent in range(3)]
        obs = self.reset()[0] if ended else self._obs()
        return obs, rewards, [ended] * 3, [False] * 3, infos

    def _obs(self):
        return [np.array([agent, self._step], np.float32) for agent in range(3)]


def test_every_agent_has_whole_episodes_with_its_own_rewards_and_statistics():
    register_env("listed", Listed)
    group = make_group("listed", 1, EnvOptions(), seed=0, first_env_idx=0)
    assert (group.num_actors, group.spec.num_agents) == (3, 3)
    _, steps = play(group, 12)
    episodes = [episode for step in steps for episode in step.episodes]
    assert len(episodes) >= 6
    for episode in episodes:
        assert episode.num_steps == 4
        assert episode.episode_return == 4.0 * episode.actor_idx
        assert episode.stats == {"true_objective": 7.0, "kills": float(episode.actor_idx)}
    for step in steps:
        assert step.obs["obs"][:, 0].tolist() == [0.0, 1.0, 2.0]
