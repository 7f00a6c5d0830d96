"""What the docstrings of the match toys state, played out, and their API against PettingZoo's own test of it."""

from __future__ import annotations

import warnings

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
