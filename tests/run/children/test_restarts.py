"""The budget of restarts: so many of one process within a time, and no more."""

from sf.run.children.restarts import RestartBudget, RestartBudgets


def test_a_process_may_be_replaced_so_often_and_not_once_more():
    budget = RestartBudget(max_restarts=3, window_s=10.0)
    assert [budget.spend("rollout-0", now) for now in (0.0, 1.0, 2.0, 3.0, 4.0)] == [True, True, True, False, False]


def test_a_restart_counts_for_as_long_as_the_window():
    budget = RestartBudget(max_restarts=2, window_s=10.0)
    assert budget.spend("rollout-0", 0.0)
    assert budget.spend("rollout-0", 6.0)
    assert not budget.spend("rollout-0", 10.0)
    assert budget.spend("rollout-0", 10.1)  # that at 0 is forgotten, that at 6 is not
    assert not budget.spend("rollout-0", 16.0)
    assert budget.spend("rollout-0", 16.1)


def test_a_refused_restart_does_not_count():
    budget = RestartBudget(max_restarts=1, window_s=10.0)
    assert budget.spend("rollout-0", 0.0)
    assert not budget.spend("rollout-0", 9.0)
    assert budget.spend("rollout-0", 10.5)


def test_every_process_has_a_budget_of_its_own():
    budget = RestartBudget(max_restarts=1, window_s=10.0)
    assert budget.spend("rollout-0", 0.0)
    assert budget.spend("rollout-1", 0.0)
    assert not budget.spend("rollout-0", 1.0)


def test_without_a_budget_nothing_is_replaced():
    assert not RestartBudget(max_restarts=0, window_s=10.0).spend("learner-0", 0.0)


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
