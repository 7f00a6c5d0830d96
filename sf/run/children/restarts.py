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
        """Whether `name` may be replaced once more; counts it if so. now: seconds of a clock that only grows."""
        times = self._times[name]
        while times and now - times[0] > self.window_s:
            times.popleft()
        if len(times) >= self.max_restarts:
            return False
        times.append(now)
        return True
