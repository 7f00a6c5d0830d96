"""Which death ends a run, and with what sentence."""

import pytest

from sf.envs.errors import UsageError
from sf.run.children.verdict import ChildError, Death, QueueLostError, RestartBudget, RestartBudgets, failure_after
from sf.system.processes.main_module import UNGUARDED
from sf.system.processes.reports import Failed

BUG = Failed("KeyError: 3", is_usage_error=False, is_final=False, traceback="Traceback")
WRONG = Failed("no such map", is_usage_error=True, is_final=False, traceback=None)
FINAL = Failed("make room", is_usage_error=False, is_final=True, traceback=None)


@pytest.mark.parametrize(
    ("death", "kind", "text"),
    [
        (Death("rollout-0", "died of SIGKILL"), None, ""),
        (Death("rollout-0", "failed", BUG), None, ""),
        (Death("rollout-0", "failed", BUG, was_ready=False), ChildError, "rollout-0: failed"),
        (Death("rollout-0", "failed", BUG, was_ready=False, is_first=False), None, ""),
        (Death("rollout-0", "failed", WRONG), UsageError, "no such map"),
        (Death("rollout-0", "failed", WRONG, is_first=False), None, ""),
        (Death("evaluator-0", "failed", WRONG, is_optional=True), None, ""),
        (Death("evaluator-0", "failed", WRONG, was_ready=False, is_optional=True), UsageError, "no such map"),
        (Death("learner-0", "failed", FINAL, is_first=False), ChildError, "learner-0: make room"),
        (Death("learner-0", "failed", FINAL, may_have_locked=True, rank=1), ChildError, "learner-0: make room"),
        (Death("policy-0", "ended", exit_code=UNGUARDED), UsageError, "the script trains whenever it is imported"),
        (Death("policy-0", "died", may_have_locked=True), QueueLostError, "policy-0 died inside of a queue"),
        (Death("learner-0", "died", rank=0), ChildError, "learner-0 of rank 0 has ended, and with it all ranks: died"),
    ],
)
def test_a_death_ends_the_run_only_where_another_start_would_not_help(death, kind, text):
    failure = failure_after(death)
    assert type(failure) is (type(None) if kind is None else kind)
    assert failure is None or str(failure).startswith(text)


def test_only_what_the_child_called_final_is_final():
    deaths = [Death("a-0", "x", error, was_ready=False) for error in (FINAL, BUG)]
    assert [failure_after(death).is_final for death in deaths] == [True, False]


@pytest.mark.parametrize(
    ("max_restarts", "asked"),
    [
        (0, {0.0: False}),
        (3, {0.0: True, 1.0: True, 2.0: True, 3.0: False, 4.0: False}),
        (2, {0.0: True, 6.0: True, 10.0: False, 10.1: True, 16.0: False, 16.1: True}),  # each is forgotten after 10 s
        (1, {0.0: True, 9.0: False, 10.5: True}),  # one that is refused does not count
    ],
)
def test_each_process_may_be_replaced_so_often_within_the_window(max_restarts, asked):
    budget = RestartBudget(max_restarts, window_s=10.0)
    budget.spend("rollout-1", 0.0)  # it has a budget of its own
    assert {now: budget.spend("rollout-0", now) for now in asked} == asked


def times_until_used_up(budgets, every_s, has_hung):
    for number in range(100):
        used_up = budgets.spend("rollout-0", number * every_s, has_hung)
        if used_up is not None:
            return number + 1, used_up.window_s
    return None


def test_a_process_that_always_hangs_is_given_up_though_it_dies_rarely():
    assert times_until_used_up(RestartBudgets(5, 300.0, hangs_for_s=120.0), 130.0, has_hung=True) == (6, 900.0)
    assert times_until_used_up(RestartBudgets(5, 300.0, hangs_for_s=120.0), 400.0, has_hung=True) is None
    assert times_until_used_up(RestartBudgets(5, 300.0, hangs_for_s=120.0), 130.0, has_hung=False) is None
    assert times_until_used_up(RestartBudgets(5, 300.0, hangs_for_s=120.0), 10.0, has_hung=False) == (6, 300.0)
