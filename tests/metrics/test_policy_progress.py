"""What is known of the latest episodes of a policy."""

import itertools

import pytest

from sf.metrics.latest_episodes import EndedEpisode, LatestEpisodes
from sf.metrics.policy_progress import PolicyProgress


class Episodes:
    """Of one policy and one actor."""

    def __init__(self, stats_avg):
        self._latest = LatestEpisodes(num_actors=1, num_policies=1, num_wanted=stats_avg)
        self.policy = PolicyProgress(0, self._latest, stats_avg)

    def end(self, num, began=0.0):
        for _ in range(num):
            self._latest.add(EndedEpisode(2.0, 10, 40, {"kills": 3}, 0, 0, began))


def test_means_say_of_how_many_episodes_they_are():
    episodes = Episodes(stats_avg=4)
    assert episodes.policy.means() == {"mean_return": None, "mean_episode_steps": None, "episodes_in_mean": 0}
    episodes.end(3)
    assert episodes.policy.means()["episodes_in_mean"] == 3
    episodes.end(3)
    assert episodes.policy.means()["episodes_in_mean"] == 4


def test_the_latest_episodes_are_the_same_in_whichever_order_actors_report_them():
    ended = [[EndedEpisode(float(10 * actor + n), 1, 1, {}, 0, actor, 0.0) for n in range(2)] for actor in range(3)]
    means = set()
    for order in set(itertools.permutations([0, 0, 1, 1, 2, 2])):
        latest = LatestEpisodes(num_actors=3, num_policies=1, num_wanted=5)
        left = [iter(episodes) for episodes in ended]
        for actor in order:
            latest.add(next(left[actor]))
        means.add(str(PolicyProgress(0, latest, 5).means()))
    assert len(means) == 1


@pytest.mark.parametrize(
    ("stats_avg", "num_episodes", "objective"), [(4, 1, None), (4, 2, 3.0), (5, 2, None), (1, 1, 3.0)]
)
def test_an_objective_takes_half_of_the_episodes_that_are_averaged(stats_avg, num_episodes, objective):
    episodes = Episodes(stats_avg)
    episodes.end(num_episodes)
    assert episodes.policy.objective("kills") == objective


def test_what_was_under_way_when_a_policy_got_other_weights_does_not_count(monkeypatch):
    episodes = Episodes(stats_avg=2)
    episodes.end(4)
    monkeypatch.setattr("sf.metrics.policy_progress.time.monotonic", lambda: 50.0)
    episodes.policy.begin_anew()
    episodes.end(4, began=49.0)
    assert (episodes.policy.objective("kills"), episodes.policy.num_waited_for) == (None, 1)
    episodes.end(1, began=50.0)
    assert (episodes.policy.objective("kills"), episodes.policy.num_waited_for) == (3.0, 0)
