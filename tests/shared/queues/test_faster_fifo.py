"""Queues of faster-fifo: what a death may leave locked is known, and the parent never hangs in it."""

import ctypes
import itertools
import os
import random
import time

import pytest
from victims import fork, kill
from waiting import has_message

from sf.shared.queues import LockedQueueError, StopRequested, make_queues
from sf.shared.queues import faster_fifo as module
from sf.system.machine import extras

PATIENCE_S = 60.0  # after which something is taken to hang
_MUTEX = 7 * 8  # where it stands in the C++ object: behind six sizes, and the attributes of the mutex


@pytest.fixture
def queues(monkeypatch):
    monkeypatch.setattr(module, "_LOCK_WITHIN_S", 1.0)
    return make_queues("faster_fifo")


def lock_for_ever(queue):
    """As if a process had died that held the lock."""
    buffer = queue._queue.queue_obj_buffer
    assert ctypes.CDLL(None).pthread_mutex_lock(ctypes.c_void_p(ctypes.addressof(buffer) + _MUTEX)) == 0


def test_the_parent_does_not_hang_at_a_lock_that_is_never_free_again(queues):
    queue = queues.make(10)
    queue.put(1)
    lock_for_ever(queue)
    for call in (lambda: queue.put(2), queue.drain):
        with pytest.raises(LockedQueueError, match="locked by a process that has died"):
            call()
    assert queue.has_messages()
    queue.stop()
    with pytest.raises(StopRequested):
        queue.get_many()


def put_into(queue):
    for index in itertools.count():
        queue.put(index % 1000)


def work_without(queue):
    queue.put(1)
    while True:
        time.sleep(60)


@pytest.mark.parametrize("body", [type(None), put_into])
def test_a_process_that_dies_inside_of_a_queue_may_have_locked_it(queues, body):
    """One that waits for a message, and one that waits for the lock."""
    queue = queues.make(10)
    if body is put_into:
        lock_for_ever(queue)
        pid = fork(put_into, queue)
    else:
        pid = fork(queue.get_many)
    ends = time.monotonic() + PATIENCE_S
    while not queues.may_be_locked_by(pid):
        assert time.monotonic() < ends
    kill(pid)
    assert queues.may_be_locked_by(pid)


def test_one_that_dies_elsewhere_has_not(queues):
    queue = queues.make(10)
    pid = fork(work_without, queue)
    assert has_message(queue, PATIENCE_S)
    ends = time.monotonic() + PATIENCE_S
    while queues.may_be_locked_by(pid):  # it puts still
        assert time.monotonic() < ends
    kill(pid)
    assert not queues.may_be_locked_by(pid)
    assert queue.get_many() == [1]
    assert not queues.may_be_locked_by(os.getpid())
    assert not queues.may_be_locked_by(None)


def test_where_it_says_that_a_queue_is_free_it_is(queues):
    """Processes that put are killed at random moments: a queue is found locked only where that was foreseen."""
    rng = random.Random(0)
    num_free = 0
    for _ in range(30):
        queue = queues.make(1000)
        pid = fork(put_and_work, queue)
        assert has_message(queue, PATIENCE_S)
        time.sleep(rng.random() * 0.01)
        kill(pid)
        if not queues.may_be_locked_by(pid):
            num_free += 1
            queue.drain()
            queue.put(7)
            assert queue.get_many() == [7]
    assert num_free


def put_and_work(queue):
    for index in itertools.count():
        queue.put(index % 1000)
        queue.get_many()
        sum(range(1000))


def test_where_the_package_is_missing_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"--queues faster_fifo needs faster_fifo: pip install '.\[faster-fifo\]'"):
        make_queues("faster_fifo")
