"""Pipes: processes may be killed in the middle of everything, and the system may refuse them."""

import errno
import fcntl
import itertools
import os
import random
import select

import pytest
from victims import fork, kill
from waiting import has_message

from sf.shared.queues import PipeQueue

PATIENCE_S = 60.0  # after which something is taken to hang


def test_no_write_is_longer_than_what_the_kernel_writes_at_once(monkeypatch):
    queue, sizes, write = PipeQueue(capacity=10_000), [], os.write

    def noted(fd, data):
        sizes.append(memoryview(data).nbytes)
        return write(fd, data)

    monkeypatch.setattr(os, "write", noted)
    queue.put_many(range(5000))
    assert sum(sizes) == 4 * 5000
    assert max(sizes) <= select.PIPE_BUF


def put_for_ever(queue, start):
    """Counts up from `start` in single puts and in long ones."""
    for size in itertools.cycle((1, 3, 700, 1, 2500)):
        if size == 1:
            queue.put(start)
        else:
            queue.put_many(range(start, start + size))
        start += size


def pass_on_for_ever(queue, passed_on):
    while True:
        passed_on.put_many(queue.get_many())


@pytest.mark.parametrize("kills", [40, pytest.param(150, marks=pytest.mark.long)])
def test_processes_killed_at_any_moment_leave_a_queue_in_order(kills):
    """Two processes put, one gets and passes on what it got; now and then one of them is killed and replaced."""
    queue, passed_on = PipeQueue(capacity=3000), PipeQueue(capacity=3000)
    rng = random.Random(kills)
    starts = itertools.count(0, 10_000_000)  # of each process that puts
    latest = {}  # what came last of those, by where they started

    def start(role):
        if role == "gets":
            return fork(pass_on_for_ever, queue, passed_on)
        start_of[role] = next(starts)
        return fork(put_for_ever, queue, start_of[role])

    def receive(enough):
        """Until `enough()`: whole indices, in their order; a gap where one was killed with them in its hands."""
        while not enough():
            assert has_message(passed_on, PATIENCE_S), "nobody goes on"
            for index in passed_on.get_many():
                begin = index - index % 10_000_000
                assert begin in known
                assert index > latest.get(begin, -1)
                latest[begin] = index
                seen.add(begin)

    start_of, known, seen = {}, set(), set()
    pids = {role: start(role) for role in ("puts", "puts too", "gets")}
    try:
        for _ in range(kills):
            known.update(start_of.values())
            count = itertools.count()
            moment = rng.randint(1, 10)
            receive(lambda count=count, moment=moment: next(count) >= moment)
            victim = rng.choice(list(pids))
            kill(pids.pop(victim))
            pids[victim] = start(victim)
        known.update(start_of.values())
        seen.clear()
        receive(lambda: seen >= set(start_of.values()))
    finally:
        for pid in pids.values():
            kill(pid)


def test_a_queue_that_the_system_gives_no_room_is_one_sentence_and_leaves_nothing(monkeypatch, capsys):
    real = fcntl.fcntl

    def refuse(fd, command, *args):
        if command == fcntl.F_SETPIPE_SZ:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        return real(fd, command, *args)

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ValueError, match=r"pipe-user-pages-soft.*--num_workers"):
        PipeQueue(capacity=100_000)
    assert os.listdir("/proc/self/fd") == before
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_queue_that_has_no_descriptors_is_one_sentence(monkeypatch):
    def refuse():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pipe", refuse)
    with pytest.raises(ValueError, match="Too many open files"):
        PipeQueue(capacity=1)
