"""Which death ends a run, and with what sentence."""

import pytest

from sf.envs.errors import UsageError
from sf.run.children.verdict import ChildError, Death, QueueLostError, failure_after
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
