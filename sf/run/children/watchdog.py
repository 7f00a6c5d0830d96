"""Finds the children that hang, by their heartbeats in the counters."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sf.run.children.roles.role import Role
from sf.run.memory import RunMemory
from sf.system.processes.child import Child

START_WITHIN_S = 120.0  # a child, at least: simulators and torch take their time on a busy machine


class Watchdog:
    """A child hangs if it stays at one piece of work, or does not begin one that waits for it.

    start_within_s: a child has so long to start, which is the longest that one hangs before it is found. Where all wait
    and nothing moves, one of them has taken a message and not said so: then all of them hang.
    """

    def __init__(self, memory: RunMemory, roles: Mapping[str, Role]) -> None:
        self._memory = memory
        self._roles = roles
        self._timeout_s = memory.plan.config.supervision.worker_timeout_s
        self.start_within_s = max(self._timeout_s, START_WITHIN_S)
        self._checked_at = time.monotonic()
        self._moved_at = time.monotonic()  # when any child was last seen to begin or end a piece of work

    def kill_what_hangs(self, children: Sequence[Child]) -> None:
        now, timeout_s = time.monotonic(), self._timeout_s
        was_suspended = now - self._checked_at > timeout_s / 2  # with all children: their time did not pass either
        self._checked_at = now
        for child in children:
            counters = self._memory.counter_row(child.role, child.idx)
            beat = counters.get("heartbeat")
            has_moved = beat != child.beat or was_suspended or bool(counters.get("is_held_up"))
            if has_moved or not child.is_ready:
                self._moved_at = now
            if has_moved or not self._is_at_work(child, beat, children):
                child.beat, child.beat_at = beat, now
        hanging = [c for c in children if now - c.beat_at > (timeout_s if c.is_ready else self.start_within_s)]
        if not hanging and now - self._moved_at > timeout_s:
            hanging = list(children)
        for child in hanging:
            child.hung_for_s = now - min(child.beat_at, self._moved_at)
            child.process.kill()

    def _is_at_work(self, child: Child, beat: float, children: Sequence[Child]) -> bool:
        role = self._roles[child.role]
        needed = role.needs(self._memory, child.idx)
        if any(other.name == needed and not other.is_ready for other in children):
            return False  # it may wait for that one's memory
        return beat % 2 == 1 or not child.is_ready or role.has_work(self._memory, child.idx)
