"""The latest episodes of a policy: no short one may count before its turn."""

import itertools

import numpy as np
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


# A sample that favours no length

NUM_ACTORS = 300
SHORT, LONG = 2, 23  # steps
SHARE_SHORT = 0.7
RETURN = {SHORT: 60.0, LONG: -220.0}
MEAN = SHARE_SHORT * RETURN[SHORT] + (1 - SHARE_SHORT) * RETURN[LONG]
STANDARD_ERROR = (RETURN[SHORT] - RETURN[LONG]) * (SHARE_SHORT * (1 - SHARE_SHORT) / NUM_ACTORS) ** 0.5


def episode(actor, began=0.0, policy_id=0, value=0.0):
    return EndedEpisode(value, 1, 1, {}, policy_id, actor, began)


class Waves:
    """Actors that have all begun together. Those of `num_policies` take turns at random."""

    def __init__(self, num_wanted, num_policies=1, num_actors=NUM_ACTORS):
        self.latest = LatestEpisodes(num_actors, num_policies, num_wanted)
        self._num_policies = num_policies
        self._rng = np.random.default_rng(num_wanted)
        self._began = np.zeros(num_actors, int)
        self._lengths = self._drawn(num_actors)
        self.step = 0

    def advance(self):
        self.step += 1
        for actor in np.flatnonzero(self._began + self._lengths == self.step).tolist():
            policy_id = int(self._rng.integers(self._num_policies))
            self.latest.add(episode(actor, self._began[actor], policy_id, RETURN[self._lengths[actor]]))
            self._began[actor], self._lengths[actor] = self.step, self._drawn(1)[0]

    def mean(self, since=0.0):
        episodes = self.latest.of(0, since)
        return np.mean([each.episode_return for each in episodes]) if episodes else None

    def _drawn(self, num):
        return np.where(self._rng.random(num) < SHARE_SHORT, SHORT, LONG)


@pytest.mark.parametrize("num_wanted", [10, 3 * NUM_ACTORS])
def test_there_is_no_mean_in_the_first_wave_and_then_it_favours_no_length(num_wanted):
    waves = Waves(num_wanted)
    for _ in range(3 * LONG):
        waves.advance()
        assert (waves.mean() is None) == (waves.step < LONG)
        if waves.step >= LONG:
            assert waves.mean() == pytest.approx(MEAN, abs=4.5 * STANDARD_ERROR)


def test_of_a_policy_that_has_other_weights_what_began_before_does_not_count_and_what_is_short_not_before_the_rest():
    waves = Waves(NUM_ACTORS, num_policies=2)
    for _ in range(100):
        waves.advance()
    means = []
    for _ in range(2 * LONG):
        means.append(waves.mean(since=100.0))
        waves.advance()
    assert set(means[:LONG]) == {None}
    assert waves.mean(since=100.0) == pytest.approx(MEAN, abs=4.5 * STANDARD_ERROR * 2**0.5)


def test_every_actor_counts_as_often_as_the_one_that_has_ended_fewest():
    latest = LatestEpisodes(num_actors=2, num_policies=1, num_wanted=4)
    for actor in (0, 0, 0, 1, 0):
        latest.add(episode(actor))
    assert [each.actor for each in latest.of(0, since=0.0)] == [0, 1]
    latest.add(episode(1))
    assert [each.actor for each in latest.of(0, since=0.0)] == [0, 1, 0, 1]


def test_an_actor_that_has_no_part_in_any_match_is_not_waited_for():
    latest = LatestEpisodes(num_actors=3, num_policies=1, num_wanted=3)
    latest.add(episode(0))
    latest.note_absent(7, [1])
    assert (latest.num_waited_for(0.0), latest.of(0, 0.0)) == (1, [])
    latest.note_absent(8, [2])
    assert (latest.num_waited_for(0.0), len(latest.of(0, 0.0))) == (0, 1)


def test_a_policy_has_a_mean_though_others_have_played_some_actors():
    latest = LatestEpisodes(num_actors=4, num_policies=2, num_wanted=2)
    for actor, policy_id in enumerate((0, 1, 2, 1)):  # 2 is a player that does not learn
        latest.add(episode(actor, policy_id=policy_id))
    assert [[each.actor for each in latest.of(policy_id, 0.0)] for policy_id in (0, 1)] == [[0], [1, 3]]
