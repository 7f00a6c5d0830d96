"""What the docstrings of the match toys state, played out, and their API against PettingZoo's own test of it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pettingzoo
import pytest
from group_driver import play
from pettingzoo.test import parallel_api_test

from sf.envs import EnvOptions, make_group
from sf.envs.toys.matches import TOYS, CountingMatch, Pennies, RockPaperScissors

GAMES = (Pennies, RockPaperScissors)


def _payoffs_played_out(game: type) -> np.ndarray:
    """What the first player wins, for every pair of choices."""
    env = game()
    first, second = env.possible_agents
    num_choices = env.action_space(first).n
    won = np.zeros((num_choices, num_choices))
    for i in range(num_choices):
        for j in range(num_choices):
            env.reset()
            _, rewards, terminations, truncations, infos = env.step({first: i, second: j})
            assert rewards[first] == -rewards[second]
            assert all(terminations.values())
            assert not any(truncations.values())
            assert env.agents == []
            for agent, choice in ((first, i), (second, j)):
                stats = infos[agent]["episode_stats"]
                assert [stats[name] for name in env.CHOICES[agent]] == [float(k == choice) for k in range(num_choices)]
            won[i, j] = rewards[first]
    return won


@pytest.mark.parametrize("game", GAMES)
def test_in_the_stated_equilibrium_no_choice_of_either_player_is_better_than_another(game: type) -> None:
    won = _payoffs_played_out(game)
    first, second = (np.array(strategy) for strategy in game.EQUILIBRIUM.values())
    np.testing.assert_allclose(won @ second, game.VALUE)
    np.testing.assert_allclose(first @ won, game.VALUE)
    for strategy in (first, second):
        assert strategy.sum() == pytest.approx(1.0)
        assert (strategy > 0).all()


@pytest.mark.parametrize("toy", TOYS)
def test_a_toy_keeps_to_the_api_of_pettingzoo(toy: str) -> None:
    class Checked(TOYS[toy], pettingzoo.ParallelEnv):
        """The test asks for members that the trainer does not."""

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        parallel_api_test(Checked(), num_cycles=100)


def test_counting_matches_know_their_number_and_take_every_length_from_one_to_seven() -> None:
    options = EnvOptions(env_kwargs='{"num_agents": 2}')
    first_obs, _ = play(make_group("toy_match_counting", 2, options, seed=0, first_env_idx=40), 1)
    assert first_obs["obs"].tolist() == [[40, 0, 0, 0, -1], [40, 1, 0, 0, -1], [41, 0, 0, 0, -1], [41, 1, 0, 0, -1]]
    for env_idx, agent_idx in np.ndindex(8, 8):
        assert {CountingMatch.num_steps(env_idx, agent_idx, episode) for episode in range(7)} == set(range(1, 8))
    env = CountingMatch()
    env.reset()
    with pytest.raises(ValueError, match="actions came for"):
        env.step({"agent_0": 0})
    for name in ("num_agents", "episodes_per_match"):
        with pytest.raises(ValueError, match=name):
            CountingMatch(**{name: 0})


def test_agents_come_back_as_often_as_told_and_never_to_a_match_that_is_over() -> None:
    def episodes_by_match(**kwargs: Any) -> list[list[int]]:
        played = []
        envs = [CountingMatch(num_agents=3, env_idx=env_idx, **kwargs) for env_idx in range(7)]
        for env in envs * 4:
            env.reset()
            num_episodes = dict.fromkeys(env.agents, 1)
            before = list(env.agents)
            while env.agents:
                env.step(dict.fromkeys(env.agents, 0))
                for agent in set(env.agents) - set(before):
                    num_episodes[agent] += 1
                before = list(env.agents)
            played.append(list(num_episodes.values()))
        return played

    assert {n for match in episodes_by_match() for n in match} == {1}
    assert {n for match in episodes_by_match(episodes_per_match=3) for n in match} == {1, 2, 3}
