"""Heartbeats, by which the parent tells a process that works from one that waits, and one that hangs from both."""

import itertools

from sf.shared.counters import Counters


def test_a_heartbeat_grows_with_each_piece_of_work_and_each_wait_and_is_odd_at_work():
    counters = Counters.allocate(2).row(1)
    beats = [counters.get("heartbeat")]
    for is_work in (True, True, False, False, True, False):
        if is_work:
            counters.working()
        else:
            counters.waiting()
        beats.append(counters.get("heartbeat"))
        assert beats[-1] % 2 == is_work
    assert all(before < after for before, after in itertools.pairwise(beats))
