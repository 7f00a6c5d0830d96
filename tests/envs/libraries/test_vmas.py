from __future__ import annotations

import sys
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from group_driver import play

from sf.envs import EnvOptions, describe, make_group

PLANE, LINE = gym.spaces.Box(-1, 1, (2,), np.float32), gym.spaces.Box(0, 4, (1,), np.float32)


class Scenario:
    """Stands in for a VMAS environment with two agents, who are paid the first number of their action. Copy e of them
    ends after `max_steps` + e steps. They see the copy, the agent and the number of steps."""

    agents = (SimpleNamespace(name="red"), SimpleNamespace(name="blue"))

    def __init__(self, num_envs: int, max_steps: int, action_of_blue: gym.Space) -> None:
        self.num_envs = num_envs
        self._ends = max_steps + torch.arange(num_envs)
        self._num_steps = torch.zeros(num_envs)
        self.num_calls = 0
        self.observation_space = gym.spaces.Tuple([gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)] * 2)
        self.action_space = gym.spaces.Tuple([PLANE, action_of_blue])

    def seed(self, seed: int) -> None:
        self.seeded = seed

    def reset_at(self, index: int) -> list[torch.Tensor]:
        self._num_steps[index] = 0
        return self._obs()

    def step(self, actions: list[np.ndarray]) -> tuple[list, list, torch.Tensor, torch.Tensor, list]:
        assert [action.shape[1:] for action in actions] == [space.shape for space in self.action_space]
        self.num_calls += 1
        self._num_steps += 1
        rewards = [torch.as_tensor(action)[:, 0] for action in actions]
        terminated = torch.zeros(self.num_envs, dtype=torch.bool)
        return self._obs(), rewards, terminated, self._num_steps >= self._ends, [{}, {}]

    def _obs(self) -> list[torch.Tensor]:
        copies = torch.arange(float(self.num_envs))
        return [torch.stack([copies, torch.full_like(copies, a), self._num_steps], 1) for a in range(2)]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> list[Scenario]:
    """Stands in for the package. Returns the environments that are made of it."""
    made: list[Scenario] = []

    def make_env(scenario: str, num_envs: int, max_steps: int, n_agents: int = 2, **kwargs: object) -> Scenario:
        made.append(Scenario(num_envs, max_steps, LINE if scenario == "simple" else PLANE))
        return made[-1]

    names = {"scenarios": ["balance"], "mpe_scenarios": ["simple"], "debug_scenarios": []}
    monkeypatch.setitem(sys.modules, "vmas", SimpleNamespace(make_env=make_env, **names))
    return made


def test_copies_are_stepped_at_once_and_each_begins_anew_by_itself(package) -> None:
    options = EnvOptions(env_kwargs='{"max_steps": 3, "n_agents": 2}')
    first_obs, steps = play(make_group("vmas:balance", 2, options, seed=0, first_env_idx=0), 6)
    assert first_obs["obs"].tolist() == [[e, a, 0] for e in range(2) for a in range(2)]
    for agents, length in ((slice(0, 2), 3), (slice(2, 4), 4)):
        shown = [step.obs["obs"][agents, 2].tolist() for step in steps]
        assert shown == [[t % (length + 1)] * 2 for t in range(1, 7)]
        assert [step.result.truncated[agents].all() for step in steps] == [t == length for t in range(1, 7)]
        for t in range(length):
            expected = np.clip(steps[t].continuous[agents, 0], -1, 1)
            np.testing.assert_allclose(steps[t].result.reward[agents], expected)
    (env,) = package
    assert (env.num_envs, env.num_calls) == (2, 6)
    _, steps = play(make_group("vmas:balance", 1, options, seed=0, first_env_idx=0), 4)
    assert steps[2].result.truncated.all()
    np.testing.assert_allclose(steps[0].result.reward, np.clip(steps[0].continuous[:, 0], -1, 1))


@pytest.mark.parametrize("num_envs", [1, 3])
def test_agents_whose_actions_differ_act_within_their_own_ranges(package, num_envs) -> None:
    options = EnvOptions(env_kwargs='{"max_steps": 9}')
    _, steps = play(make_group("vmas:simple", num_envs, options, seed=0, first_env_idx=0), 5)
    for step in steps:
        red, blue = step.continuous[::2, 0], step.continuous[1::2, 0]
        np.testing.assert_allclose(step.result.reward[::2], np.clip(red, -1, 1), atol=1e-6)
        np.testing.assert_allclose(step.result.reward[1::2], np.clip(2 + 2 * blue, 0, 4), atol=1e-6)


def test_what_it_does_not_take_is_said(package, monkeypatch) -> None:
    with pytest.raises(ValueError, match="num_envs"):
        describe("vmas:balance", EnvOptions(env_kwargs='{"num_envs": 8}'))
    with pytest.raises(ValueError, match="vmas:balanse"):
        describe("vmas:balanse", EnvOptions())
    monkeypatch.setitem(sys.modules, "vmas", None)
    with pytest.raises(ValueError, match="pip install 'vmas"):
        describe("vmas:balance", EnvOptions())


def test_a_real_scenario_pays_its_agents() -> None:
    pytest.importorskip("vmas")
    spec = describe("vmas:balance", EnvOptions())
    assert spec.num_agents == 3
    _, steps = play(make_group("vmas:balance", 2, EnvOptions(), seed=0, first_env_idx=0), 102)
    assert steps[99].result.truncated.any() or any(step.result.terminated.any() for step in steps[:100])
    assert np.std([step.result.reward for step in steps]) > 0
