"""How often a process may be replaced before the run gives up."""

from __future__ import annotations

from collections import defaultdict, deque


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
