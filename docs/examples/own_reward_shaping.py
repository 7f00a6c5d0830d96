"""Shaped rewards whose weights have names: the score stays that of the environment, and a population tunes the weights.

python own_reward_shaping.py
python own_reward_shaping.py --num_policies 4 --with_pbt true --lr_schedule constant
"""

import gymnasium as gym

from sf import main
from sf.envs import register_env


class ShapedMountainCar(gym.Wrapper):
    """Pays for height and for speed as well."""

    shaping = {"height": 1.0, "speed": 10.0}  # noqa: RUF012  the names of the weights, and what they are at first

    def __init__(self, env):
        super().__init__(env)
        self._weights = dict(self.shaping)

    def set_shaping(self, weights):
        """The weights of the policy that plays now, called when an episode begins."""
        self._weights = weights

    def reset(self, **kwargs):
        self._raw_return = 0.0
        return self.env.reset(**kwargs)

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._raw_return += reward
        position, speed = obs
        bonus = self._weights["height"] * (position + 0.5) ** 2 + self._weights["speed"] * abs(speed)
        if terminated or truncated:  # raw_return is what is reported and ranked; what was paid is stats/shaped_return
            info = {**info, "episode_stats": {"raw_return": self._raw_return, "solved": float(terminated)}}
        return obs, reward + float(bonus), terminated, truncated, info


@register_env("shaped_mountain_car")
def make(**kwargs):
    return ShapedMountainCar(gym.make("MountainCar-v0", **kwargs))


if __name__ == "__main__":
    main(env="shaped_mountain_car", train_for_env_steps=500_000, batch_size=1024, num_epochs=4)
