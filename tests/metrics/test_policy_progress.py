"""What is known of the latest episodes of a policy."""

import itertools

import pytest

from sf.metrics.policy_progress import PolicyProgress

EPISODE = [2.0, 10, 40, {"kills": 3}]  # return, steps, frames, stats


def test_means_say_of_how_many_episodes_they_are():
    policy = PolicyProgress(stats_avg=4)
    assert policy.means() == {"mean_return": None, "mean_episode_steps": None, "episodes_in_mean": 0}
    policy.episodes.extend([EPISODE] * 3)
    assert policy.means()["episodes_in_mean"] == 3
    policy.episodes.extend([EPISODE] * 3)
    assert policy.means()["episodes_in_mean"] == 4


def test_the_latest_episodes_are_the_same_in_whichever_order_they_are_reported():
    episodes = [[float(n), 1, 1, {}, [0, n // 2, n % 2]] for n in range(7)]
    for reported in itertools.permutations(episodes):
        policy = PolicyProgress(stats_avg=3)
        for episode in reported:
            policy.add(episode)
        assert list(policy.episodes) == episodes[-3:]
    policy = PolicyProgress(stats_avg=3)
    for n in (2, 1, 0, 3):  # asynchronous ones have no order
        policy.add([float(n), 1, 1, {}, []])
    assert [episode[0] for episode in policy.episodes] == [1.0, 0.0, 3.0]


@pytest.mark.parametrize(
    ("stats_avg", "num_episodes", "objective"), [(4, 1, None), (4, 2, 3.0), (5, 2, None), (1, 1, 3.0)]
)
def test_an_objective_takes_half_of_the_episodes_that_are_averaged(stats_avg, num_episodes, objective):
    policy = PolicyProgress(stats_avg)
    policy.episodes.extend([EPISODE] * num_episodes)
    assert policy.objective("kills") == objective
