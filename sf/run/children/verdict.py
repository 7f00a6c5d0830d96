"""Decides from facts alone whether the death of a child ends the run, and how often a child may be replaced."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

from sf.envs.errors import UsageError
from sf.system.processes.main_module import UNGUARDED, UNGUARDED_MESSAGE
from sf.system.processes.reports import Failed


class ChildError(RuntimeError):
    """A child process failed for good; the text is what the child said. is_final: another start would not help."""

    def __init__(self, text: str, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class QueueLostError(ChildError):
    """A queue may be locked for ever, so nothing that uses it can be waited for."""

    def __init__(self, what: str, cause: str) -> None:
        super().__init__(
            f"{what} ({cause}). The run cannot go on: resume it, with --queues pipes where processes may be killed"
        )


@dataclass(frozen=True)
class Death:
    """Of a child that nobody asked to end.

    cause: in words. error: what it said of the exception, if it did. was_ready: its set-up was done. is_first: it had
    not been started before in this run. is_optional: training does without it. may_have_locked: a queue, in which it
    died. rank: of this trainer, where the learners of all ranks have to begin together after this death.
    """

    name: str
    cause: str
    error: Failed | None = None
    exit_code: int | None = None
    was_ready: bool = True
    is_first: bool = True
    is_optional: bool = False
    may_have_locked: bool = False
    rank: int | None = None


def failure_after(death: Death) -> Exception | None:
    """None: a new child can take its place, as often as the budget of restarts allows."""
    name, error = death.name, death.error
    if error is not None:
        if error.is_final:
            return ChildError(f"{name}: {error.message}", is_final=True)
        # A wrong setting shows while a child sets itself up, or in the first steps of an environment.
        if death.is_first and (not death.was_ready or (error.is_usage_error and not death.is_optional)):
            return UsageError(error.message) if error.is_usage_error else ChildError(f"{name}: {death.cause}")
    if death.exit_code == UNGUARDED:
        return UsageError(UNGUARDED_MESSAGE)
    if death.may_have_locked:
        return QueueLostError(f"{name} died inside of a queue, which may be locked for ever", death.cause)
    if death.rank is not None:  # torchrun starts all of them again, or the user does
        return ChildError(f"{name} of rank {death.rank} has ended, and with it all ranks: {death.cause}")
    return None


class RestartBudget:
    """Each name may be replaced `max_restarts` times within any `window_s` seconds."""

    def __init__(self, max_restarts: int, window_s: float) -> None:
        self.max_restarts = max_restarts
        self.window_s = window_s
        self._times: defaultdict[str, deque[float]] = defaultdict(deque)

    def spend(self, name: str, now: float) -> bool:
        """Returns whether `name` may be replaced once more, and counts it if so. now: seconds of a monotonic clock."""
        times = self._times[name]
        while times and now - times[0] > self.window_s:
            times.popleft()
        if len(times) >= self.max_restarts:
            return False
        times.append(now)
        return True


class RestartBudgets:
    """One of all deaths, and one of those by hanging, whose window is longer by the time that so many take.

    A process that hangs is found after a while, so few such deaths fall into the window of the others: a process that
    always hangs would be replaced for ever.
    """

    def __init__(self, max_restarts: int, window_s: float, hangs_for_s: float) -> None:
        """hangs_for_s: after which a process is taken to hang, at most."""
        self._deaths = RestartBudget(max_restarts, window_s)
        self._hangs = RestartBudget(max_restarts, window_s + max_restarts * hangs_for_s)

    def spend(self, name: str, now: float, has_hung: bool) -> RestartBudget | None:
        """None where `name` may be replaced once more; else the budget that is used up. now: as in `RestartBudget`."""
        budgets = [self._deaths, self._hangs] if has_hung else [self._deaths]
        return next((budget for budget in budgets if not budget.spend(name, now)), None)
