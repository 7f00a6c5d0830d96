"""Which groups of environments have which task: by the weights, and by what the policy learns."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf.run.tasks.choice import EPISODES, TaskChoice, change
from sf.run.tasks.groups import in_turn, moved, num_groups_of_tasks
from sf.shared.task_table import TaskTable


def compositions(total, parts):
    """Yields all ways to share `total` out over `parts`, one at least for each."""
    for cuts in itertools.combinations(range(1, total), parts - 1):
        yield np.diff([0, *cuts, total])


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=4), st.integers(0, 9))
def test_no_other_sharing_is_nearer_to_the_weights(weights, num_more):
    num_groups = len(weights) + num_more
    numbers = num_groups_of_tasks(weights, num_groups)
    wanted = num_groups * np.array(weights) / sum(weights)
    least = min(((other - wanted) ** 2).sum() for other in compositions(num_groups, len(weights)))
    assert numbers.sum() == num_groups
    assert numbers.min() >= 1
    assert ((numbers - wanted) ** 2).sum() == pytest.approx(least)
    order = in_turn(numbers)
    assert np.bincount(order, minlength=len(weights)).tolist() == numbers.tolist()
    assert sorted(order[: len(weights)]) == [*range(len(weights))]  # no task waits for another one to have all of its


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(lambda a: st.tuples(st.just(a), st.permutations(a))))
def test_as_few_groups_as_possible_change_their_task(numbers):
    before, after = map(np.array, numbers)
    of_groups = in_turn(before)
    new = moved(of_groups, after)
    assert np.bincount(new, minlength=len(after)).tolist() == after.tolist()
    assert (new != of_groups).sum() == np.maximum(before - after, 0).sum()


def test_a_difference_by_chance_is_no_change_and_a_real_one_is_in_standard_deviations():
    rng = np.random.default_rng(0)
    same = [change(rng.normal(3, 2, EPISODES), rng.normal(3, 2, EPISODES)) for _ in range(2000)]
    assert np.mean([each > 0 for each in same]) < 0.1
    for shift in (6.0, -6.0):
        before, now = rng.normal(0, 2, EPISODES), rng.normal(shift, 2, EPISODES)
        assert change(before, now) == pytest.approx(3 - 2 * (2 / EPISODES) ** 0.5, abs=0.6)
    assert change([1.0] * 5, [1.0] * 5) == 0
    assert change([1.0] * 5, [2.0] * 5) == 1


def test_groups_go_to_the_task_whose_return_changes_and_every_task_keeps_one(said):
    table = TaskTable.allocate(["a", "b", "c"], in_turn(np.array([4, 4, 4])))
    choice = TaskChoice(table, {"a": 1.0, "b": 1.0, "c": 1.0})

    def period(*means):
        for name, mean in zip("abc", means, strict=True):
            choice.add({f"return/{name}": mean + (n % 2)} for n in range(EPISODES))
            if name != "c":
                choice.choose_if_due()  # not before each task has had enough
        choice.choose_if_due()
        return np.bincount(table.arrays["of_groups"], minlength=3).tolist()

    assert period(0, 0, 0) == [4, 4, 4]
    assert period(0, 10, 0) == [2, 8, 2]
    assert period(0, 10, -10) == [2, 2, 8]
    assert period(0, 10, -10) == [4, 4, 4]
    assert len(said) == 3
