from types import SimpleNamespace

import pytest

from sf.metrics.progress import Progress
from sf.run.reports import ReportHandler
from sf.shared.counters import Counters
from sf.system.processes.reports import Episodes


@pytest.mark.parametrize(
    ("objective", "stats", "names"),
    [
        ("kilss", [{"kills": 1.0, "won": 0.0}], "they report kills, won"),
        ("kilss", [{}], "they report no statistics"),
        ("kills", [{"won": 0.0}, {}, {"kills": 1.0}], None),
        ("true_objective", [{"won": 0.0}], None),
    ],
)
def test_an_objective_that_no_episode_reports_is_said_once_before_policies_are_ranked_by_it(
    objective, stats, names, said
):
    roles = {"rollout": [0], "policy": [1], "learner": [2]}
    progress = Progress(Counters.allocate(3), roles, 1, stats_avg=6, num_policies=2, objective=objective)
    handler = ReportHandler(progress, 1, orders=None, evaluations=None, videos=None)
    for n in range(9):
        assert not (said and progress.policies[1].objective(objective) is None)
        episode = [1.0, 1, 1, stats[n % len(stats)], 1, 0, 0.0]
        handler.handle(SimpleNamespace(name="rollout-0", idx=0), Episodes([episode], lost_episodes=0, absent=[]))
    sentence = f"pbt_target_objective is {objective!r}, which no episode has reported, so policies are ranked by their"
    assert said == ([] if names is None else [f"{sentence} return: {names}"])
