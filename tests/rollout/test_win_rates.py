"""Who has won a match of different policies."""

import numpy as np
import pytest

from sf.envs import Episode
from sf.rollout.win_rates import WinRates


def judged(win_rates, returns, policy, first_actor=0):
    """The win rate of each agent whose episode ends, in its order; None where it has none."""
    episodes = [Episode(first_actor + n, paid, 1, 1, {"kills": 2.0}) for n, paid in enumerate(returns)]
    found = win_rates.add_to(episodes, np.array([*[0] * first_actor, *policy]))
    assert [episode.actor_idx for episode in found] == [episode.actor_idx for episode in episodes]
    assert all(episode.stats["kills"] == 2.0 for episode in found)
    return [episode.stats.get("win_rate") for episode in found]


def test_the_higher_return_wins_and_the_same_one_is_a_draw():
    win_rates = WinRates(num_agents=2)
    assert judged(win_rates, [2.0, -2.0], [0, 1]) == [1.0, 0.0]
    assert judged(win_rates, [-0.5, 0.5, 0.0, 0.0], [1, 0, 0, 1], first_actor=2) == [0.0, 1.0, 0.5, 0.5]


def test_a_match_against_itself_says_nothing():
    win_rates = WinRates(num_agents=2)
    assert judged(win_rates, [2.0, -2.0], [1, 1]) == [None, None]


def test_a_policy_that_plays_several_agents_has_the_mean_of_their_returns():
    assert judged(WinRates(num_agents=4), [3.0, -1.0, 0.0, -2.0], [0, 1, 1, 0]) == [1.0, 0.0, 0.0, 1.0]


def test_among_several_policies_it_is_the_share_of_the_others_that_are_beaten():
    assert judged(WinRates(num_agents=3), [3.0, -1.0, -2.0], [4, 7, 5]) == [1.0, 0.5, 0.0]
    assert judged(WinRates(num_agents=3), [2.0, -1.0, -1.0], [4, 7, 5]) == [1.0, 0.25, 0.25]


@pytest.mark.parametrize("shared", [[1.0, 1.0], [2.0, -1.0]])
def test_an_environment_whose_returns_do_not_add_up_to_zero_has_no_winners(shared):
    win_rates = WinRates(num_agents=2)
    assert judged(win_rates, [0.0, 0.0], [0, 1]) == [None, None]  # no reward yet is no draw
    assert judged(win_rates, shared, [0, 1]) == [None, None]
    assert judged(win_rates, [1.0, -1.0], [0, 1]) == [None, None]


def test_agents_that_leave_before_the_others_say_nothing():
    win_rates = WinRates(num_agents=2)
    assert judged(win_rates, [1.0], [0, 1]) == [None]
