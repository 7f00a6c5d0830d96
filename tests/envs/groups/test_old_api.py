from __future__ import annotations

from collections import namedtuple
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.old_api import as_gymnasium, as_gymnasium_space

OldBox = namedtuple("OldBox", "low, high, shape, dtype")
OldDiscrete = namedtuple("OldDiscrete", "n")
OldSpaces = namedtuple("OldSpaces", "spaces")


class OldWalk:
    """What an environment for gym 0.21 looks like: episodes of three steps, of which every other one is truncated."""

    observation_space = OldBox(0, 255, (2,), np.uint8)
    action_space = OldDiscrete(3)

    def __init__(self) -> None:
        self.seeds: list[int | None] = []
        self.episode = -1

    def seed(self, seed: int | None = None) -> None:
        self.seeds.append(seed)

    def reset(self) -> np.ndarray:
        self.episode, self.count = self.episode + 1, 0
        return np.zeros(2, np.uint8)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        self.count += 1
        done = self.count == 3
        info = {"TimeLimit.truncated": True} if done and self.episode % 2 else {}
        return np.full(2, self.count, np.uint8), 1.0, done, info


class NewWalk(OldWalk):
    """No class of Gymnasium, but its API."""

    def reset(self, *, seed: int | None = None) -> Any:
        self.seed(seed)
        return super().reset(), {}

    def step(self, action: int) -> Any:
        obs, reward, done, info = super().step(action)
        return obs, reward, done and not info, done and bool(info), info


@pytest.mark.parametrize("kind", [OldWalk, NewWalk])
def test_an_environment_with_the_api_of_gym_ends_as_it_says(kind: type[OldWalk]) -> None:
    env = kind()
    group = GymGroup("walk", [env], 5, 0)  # type: ignore[list-item]
    assert group.spec.obs_space["obs"] == gym.spaces.Box(0, 255, (2,), np.uint8)
    assert group.spec.action_space == gym.spaces.Discrete(3)
    _, steps = play(group, 7)
    assert [bool(step.result.terminated[0]) for step in steps] == [False, False, True, False, False, False, False]
    assert [bool(step.result.truncated[0]) for step in steps] == [False, False, False, False, False, True, False]
    assert [episode.num_steps for step in steps for episode in step.episodes] == [3, 3]
    assert len([seed for seed in env.seeds if seed is not None]) == 1


def test_spaces_of_gym_are_known_by_their_attributes() -> None:
    parts = OldSpaces({"a": OldBox(-1.0, 1.0, (2,), np.float32), "b": OldSpaces((OldDiscrete(2),))})
    assert as_gymnasium_space(parts) == gym.spaces.Dict(
        a=gym.spaces.Box(-1, 1, (2,), np.float32), b=gym.spaces.Tuple([gym.spaces.Discrete(2)])
    )
    assert as_gymnasium_space(namedtuple("Multi", "nvec")([2, 3])) == gym.spaces.MultiDiscrete([2, 3])
    assert as_gymnasium_space(namedtuple("MultiBinary", "n")(4)) == gym.spaces.MultiBinary(4)


def test_a_registered_class_with_the_api_of_gym_is_drawn_and_a_seed_without_a_value_is_left_alone() -> None:
    class Seedless(OldWalk):
        def seed(self) -> None:  # type: ignore[override]
            raise AssertionError

    envs.register_env("old_walk", Seedless)  # type: ignore[type-var]
    assert envs.describe("old_walk", EnvOptions()).action_space == gym.spaces.Discrete(3)
    play(envs.make_rendered_group("old_walk", 1, EnvOptions(), seed=0, first_env_idx=0), 2)
    with pytest.raises(ValueError, match=r"^many: "):
        as_gymnasium("many", gym.make_vec("CartPole-v1", 2))
