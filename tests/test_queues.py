"""Queues: order, room, and what is left of them when processes are killed in the middle of everything."""

import errno
import fcntl
import itertools
import multiprocessing
import os
import random
import threading

import pytest
from victims import fork, kill

from sf.queues import STOP, IndexQueue, StopRequested, wait

PATIENCE_S = 60.0  # after which something is taken to hang


def test_indices_come_in_the_order_in_which_they_were_put():
    queue = IndexQueue(capacity=4000)
    queue.put(7)
    queue.put_many(range(3000))
    queue.put(8)
    assert queue.get_many(at_most=3) == [7, 0, 1]
    rest = []
    while queue.has_messages():
        rest += queue.get_many_nowait()
    assert rest == [*range(2, 3000), 8]
    assert queue.get_many_nowait() == []


def test_no_more_indices_are_taken_than_asked_for():
    queue = IndexQueue(capacity=10)
    queue.put_many(range(5))
    assert queue.get_many(at_most=2) == [0, 1]
    assert queue.get_many_nowait(at_most=2) == [2, 3]
    assert queue.get_many(at_most=2) == [4]


def test_nothing_put_is_nothing_to_get():
    queue = IndexQueue(capacity=10)
    queue.put_many([])
    assert not queue.has_messages()
    assert queue.get_many_nowait() == []


@pytest.mark.parametrize("get", [IndexQueue.get_many, IndexQueue.get_many_nowait])
def test_a_stop_is_raised_wherever_it_stands_among_the_messages(get):
    queue = IndexQueue(capacity=10)
    for messages in ([STOP], [1, STOP], [STOP, 1], [1, STOP, 2]):
        queue.put_many(messages)
        with pytest.raises(StopRequested):
            get(queue)
        assert not queue.has_messages()


def test_a_drained_queue_is_empty():
    queue = IndexQueue(capacity=30000)
    queue.put_many([*range(29000), STOP])
    queue.drain()
    assert queue.get_many_nowait() == []


def test_waiting_for_several_queues_names_those_with_messages():
    queues = [IndexQueue(capacity=1) for _ in range(3)]
    assert wait(queues, timeout_s=0.0) == []
    queues[2].put(0)
    assert wait(queues) == [queues[2].fileno()]
    queues[0].put(0)
    assert wait(queues) == [queues[0].fileno(), queues[2].fileno()]
    queues[2].get_many()
    assert wait(queues, timeout_s=PATIENCE_S) == [queues[0].fileno()]


def in_time(work):
    """Run `work` in a thread, and fail where it does not end."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "a put waits"


@pytest.mark.parametrize("capacity", [1, 1000, 15872, 16384, 60000])  # 15872: the pipe has no page to spare
@pytest.mark.parametrize("sizes", [[1], [750], [513], [1024, 1], [1 << 20]], ids=str)  # of the single puts
def test_a_put_never_waits_while_there_is_room(capacity, sizes):
    queue = IndexQueue(capacity)
    rng = random.Random(0)
    put, got = [], []

    def fill():
        for size in itertools.cycle(sizes):
            room = capacity - (len(put) - len(got))
            if room == 0:
                return
            messages = range(len(put), len(put) + min(size, room))
            if len(messages) == 1:
                queue.put(messages[0])
            else:
                queue.put_many(messages)
            put.extend(messages)

    for _ in range(40):
        in_time(fill)
        got += queue.get_many(at_most=rng.randint(1, 1500))
    in_time(lambda: queue.put(STOP))
    while len(got) < len(put):
        got += queue.get_many(at_most=min(1024, len(put) - len(got)))
    assert got == put
    with pytest.raises(StopRequested):
        queue.get_many()


def _echo(requests, answers):
    try:
        while True:
            answers.put_many(requests.get_many())
    except StopRequested:
        answers.put(STOP)


def test_a_spawned_process_gets_and_puts():
    requests, answers = IndexQueue(capacity=10), IndexQueue(capacity=10)
    child = multiprocessing.get_context("spawn").Process(target=_echo, args=(requests, answers))
    child.start()
    requests.put_many([3, 4])
    assert wait([answers], PATIENCE_S)
    assert answers.get_many() == [3, 4]
    requests.put(STOP)
    child.join()
    with pytest.raises(StopRequested):
        answers.get_many()


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


def test_processes_killed_at_any_moment_leave_a_queue_in_order():
    """Two processes put, one gets and passes on what it got; 150 times one of them is killed and replaced."""
    queue, passed_on = IndexQueue(capacity=3000), IndexQueue(capacity=3000)
    rng = random.Random(0)
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
            assert wait([passed_on], PATIENCE_S), "nobody goes on"
            for index in passed_on.get_many():
                begin = index - index % 10_000_000
                assert begin in known
                assert index > latest.get(begin, -1)
                latest[begin] = index
                seen.add(begin)

    start_of, known, seen = {}, set(), set()
    pids = {role: start(role) for role in ("puts", "puts too", "gets")}
    try:
        for _ in range(150):
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
    with pytest.raises(ValueError, match=r"/proc/sys/fs/pipe-user-pages-soft.*lower --num_workers"):
        IndexQueue(capacity=100_000)
    assert os.listdir("/proc/self/fd") == before
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_queue_that_has_no_descriptors_is_one_sentence(monkeypatch):
    def refuse():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pipe", refuse)
    with pytest.raises(ValueError, match="Too many open files"):
        IndexQueue(capacity=1)
