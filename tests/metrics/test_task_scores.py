"""One score over several tasks."""

import pytest

from sf.metrics.latest_episodes import EndedEpisode
from sf.metrics.policy_progress import PolicyProgress, episode_means
from sf.metrics.task_scores import returns_of_tasks, task_scores

EPISODES = [
    {"return/a": 4.0, "score/a": 0.2},
    {"return/a": 8.0, "score/a": 0.6},
    {"return/b": 100.0, "score/b": 5.0},
    {"return/b": -20.0, "score/b": -1.0},
    {"return/c": 7.0, "kills": 3.0},
    {"return/d": 7.0, "score/d": -0.3},
]


def test_the_score_is_of_the_mean_return_of_each_task_and_no_task_makes_up_for_others():
    assert returns_of_tasks(EPISODES) == {"a": 6.0, "b": 40.0, "c": 7.0, "d": 7.0}
    # a 0.4; b 2, which is capped after the mean; c has no reference; d -0.3
    assert task_scores(EPISODES) == pytest.approx({"task_score_mean": (0.4 + 1 - 0.3) / 3, "task_score_median": 0.4})
    assert task_scores([{"return/c": 7.0}, {}]) == {}


class Latest:
    def __init__(self, stats):
        self.episodes = [EndedEpisode(each.get("return/a", 1.0), 5, 5, each, 0, 0, 0.0) for each in stats]

    def of(self, policy_id, since):
        return self.episodes


def test_a_policy_is_judged_by_the_score_unless_episodes_have_the_objective():
    progress = PolicyProgress(0, Latest(EPISODES), stats_avg=6)
    assert progress.objective("true_objective") == pytest.approx((0.4 + 1 - 0.3) / 3)
    assert progress.objective_values("true_objective") == [0.2, 0.6, 1.0, -1.0, -0.3]
    assert progress.return_of_task("a") == 6.0
    assert progress.means()["stats/task_score_median"] == pytest.approx(0.4)
    assert progress.means()["stats/return/b"] == 40.0
    assert progress.objective("kills") == pytest.approx((4 + 8 + 1 + 1 + 3 + 1) / 6)
    assert "stats/task_score_mean" not in episode_means(Latest([{"return/c": 1.0}]).episodes)
