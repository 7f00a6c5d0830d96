"""The scores that the docstrings of the toys state, played out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play

from sf.envs import EnvOptions, UsageError, describe, make_group
from sf.envs.toys.single import TOYS, Bandit, Counting, Memory, Symbols

_TASKS = [toy for toy in TOYS if toy != "toy_counting"]

_BEST: dict[str, Callable[[Any], Any]] = {
    "toy_bandit": lambda obs: Bandit.PAYING_ARM,
    "toy_identity": lambda obs: obs,
    "toy_continuous": lambda obs: obs,
    "toy_tuple": lambda obs: (int(obs[:3].argmax()), obs[3:]),
    "toy_faulty": lambda obs: int(obs.argmax()),
    "toy_symbols": lambda obs: Symbols.SIGNS.index(obs.max()),
    "toy_dict": lambda obs: np.array([obs["image"][0, -1, 0] > 0, obs["vector"][1] > 0], np.int64),
}


def _return(env: gym.Env, act: Callable[[Any], Any]) -> float:
    obs, _ = env.reset()
    total, ended = 0.0, False
    while not ended:
        action = act(obs)
        assert env.action_space.contains(action)
        obs, reward, terminated, truncated, _ = env.step(action)
        assert env.observation_space.contains(obs)
        total, ended = total + reward, terminated or truncated
    return total


@pytest.mark.parametrize("toy", _BEST)
def test_the_best_policy_reaches_the_stated_best_return(toy: str) -> None:
    env = TOYS[toy]()
    env.reset(seed=0)
    for _ in range(10):
        assert _return(env, _BEST[toy]) == pytest.approx(env.BEST_RETURN, abs=1e-5)


@pytest.mark.parametrize("toy", _TASKS)
def test_uniform_actions_reach_the_stated_random_return(toy: str) -> None:
    env = TOYS[toy]()
    env.reset(seed=1)
    env.action_space.seed(1)
    returns = [_return(env, lambda obs: env.action_space.sample()) for _ in range(300)]
    error = np.std(returns) / np.sqrt(len(returns))
    assert np.mean(returns) == pytest.approx(env.RANDOM_RETURN, abs=4 * error)
    assert 6 * error < env.BEST_RETURN - env.RANDOM_RETURN


@pytest.mark.parametrize("delay", [1, 4, 9])
def test_the_memory_task_is_solved_with_the_cue_and_says_nothing_of_it_later(delay: int) -> None:
    env = Memory(delay=delay)
    env.reset(seed=0)
    later = set()
    for _ in range(30):
        cue, _ = env.reset()
        right = int(cue.argmax())
        for _ in range(delay):
            obs, reward, terminated, _, _ = env.step(1 - right)
            assert not reward
            assert not terminated
            later.add((right, tuple(obs)))
        _, reward, terminated, _, _ = env.step(right)
        assert reward == env.BEST_RETURN
        assert terminated
    seen = [{obs for cue, obs in later if cue == right} for right in (0, 1)]
    assert seen[0] == seen[1]
    assert all(obs[:2] == (0.0, 0.0) for obs in seen[0])


def test_counting_envs_know_their_number_and_take_every_length_from_one_to_seven() -> None:
    first_obs, _ = play(make_group("toy_counting", 3, EnvOptions(), seed=0, first_env_idx=40), 1)
    assert first_obs["obs"].tolist() == [[40, 0, 0, -1], [41, 0, 0, -1], [42, 0, 0, -1]]
    for env_idx in range(8):
        assert {Counting.num_steps(env_idx, episode) for episode in range(14)} == set(range(1, 8))


def test_env_kwargs_reach_a_toy_and_others_are_refused() -> None:
    options = EnvOptions(env_kwargs='{"delay": 2}')
    _, steps = play(make_group("toy_memory", 1, options, seed=0, first_env_idx=0), 3)
    assert [step.result.terminated[0] for step in steps] == [False, False, True]
    for env_id, kwargs in (("toy_identity", '{"delay": 2}'), ("toy_memory", '{"delay": 0}')):
        with pytest.raises(UsageError, match="delay"):
            describe(env_id, EnvOptions(env_kwargs=kwargs))
