"""The script that measures the memory of a run, on a run."""

import memory_of_a_run
import pytest
from memory_of_a_run import MB, Role

SMAPS = """55a4c0000000-7ffe00000000 ---p 00000000 00:00 0    [rollup]
Rss:               40000 kB
Pss:               12000 kB
Private_Clean:      1000 kB
Private_Dirty:      9000 kB
"""


def test_sizes_are_read_from_what_the_kernel_says():
    sizes = memory_of_a_run.memory(SMAPS)
    assert (sizes["Pss"], sizes["Private_Dirty"]) == (12000 * 1024, 9000 * 1024)


def test_rows_are_sorted_by_size_and_end_with_the_sum():
    roles = {"rollout": Role(2, 20 * MB, 3 * MB), "learner": Role(1, 300 * MB, 30 * MB)}
    assert list(memory_of_a_run.rows(2, roles)) == [
        "| 2 | learner | 1 | 300.0 | 30 |",
        "| 2 | rollout | 2 | 10.0 | 3 |",
        "| 2 | all | 3 | | 353 with private |",
    ]


@pytest.mark.long
def test_a_run_is_measured_by_role_and_ended():
    flags = ["--env", "CartPole-v1", "--num_workers", "1", "--device", "cpu", "--learner_threads", "1"]
    roles = memory_of_a_run.measured(flags, seconds=0.0)
    counts = {name: role.count for name, role in roles.items()}
    assert {name: counts.get(name) for name in ("parent", "learner", "policy", "rollout")} == {
        "parent": 1, "learner": 1, "policy": 1, "rollout": 1,
    }  # fmt: skip
    assert all(role.private > 0 for role in roles.values())
    assert 50 * MB < sum(role.private + role.shared for role in roles.values()) < 5000 * MB
