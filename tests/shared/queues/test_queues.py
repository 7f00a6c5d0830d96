"""What queues of every kind promise: order, room, and a reader that can be stopped."""

import itertools
import multiprocessing
import random
import threading

import pytest
from waiting import has_message, in_time

from sf.shared.queues import StopRequested, make_queues

PATIENCE_S = 60.0  # after which something is taken to hang


@pytest.fixture(params=["pipes", "faster_fifo"])
def queues(request):
    return make_queues(request.param)


def test_indices_come_in_the_order_in_which_they_were_put(queues):
    queue = queues.make(4000)
    queue.put(7)
    queue.put_many(range(3000))
    queue.put(8)
    assert queue.get_many(at_most=3) == [7, 0, 1]
    rest = []
    while queue.has_messages():
        rest += queue.get_many()
    assert rest == [*range(2, 3000), 8]


def test_no_more_indices_are_taken_than_asked_for(queues):
    queue = queues.make(10)
    queue.put_many(range(5))
    assert queue.get_many(at_most=2) == [0, 1]
    assert queue.get_many(at_most=2) == [2, 3]
    assert queue.get_many(at_most=2) == [4]


def test_nothing_put_is_nothing_to_get(queues):
    queue = queues.make(10)
    queue.put_many([])
    assert not queue.has_messages()


def test_a_queue_that_is_stopped_raises_whether_or_not_messages_wait(queues):
    for messages in ([], [1], [1, 2]):
        queue = queues.make(10)
        queue.put_many(messages)
        queue.stop()
        with pytest.raises(StopRequested):
            queue.get_many()


def test_a_reader_that_waits_is_stopped(queues):
    queue = queues.make(10)
    threading.Timer(0.3, queue.stop).start()
    with pytest.raises(StopRequested):
        in_time(queue.get_many, PATIENCE_S)


def test_a_drained_queue_is_empty(queues):
    queue = queues.make(30000)
    queue.put_many(range(29000))
    queue.drain()
    assert not queue.has_messages()
    queue.put(3)
    assert queue.get_many() == [3]


@pytest.mark.parametrize(
    ("kind", "capacity", "num_turns"),
    [
        *(("pipes", capacity, 40) for capacity in (1, 1000, 15872, 16384, 60000)),  # 15872: no page of it is to spare
        *(("faster_fifo", capacity, 5) for capacity in (1, 1000)),  # each put of this process takes a thread
    ],
)
@pytest.mark.parametrize("sizes", [[1], [750], [513], [1024, 1], [1 << 20]], ids=str)  # of the single puts
def test_a_put_never_waits_while_there_is_room(kind, capacity, num_turns, sizes):
    queue = make_queues(kind).make(capacity)
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

    for _ in range(num_turns):
        in_time(fill, PATIENCE_S)
        got += queue.get_many(at_most=rng.randint(1, 1500))
    while len(got) < len(put):
        got += queue.get_many(at_most=min(1024, len(put) - len(got)))
    assert got == put
    in_time(queue.stop, PATIENCE_S)
    with pytest.raises(StopRequested):
        queue.get_many()


def _echo(requests, answers):
    try:
        while True:
            answers.put_many(requests.get_many())
    except StopRequested:
        answers.stop()


def test_a_spawned_process_gets_and_puts(queues):
    requests, answers = queues.make(10), queues.make(10)
    child = multiprocessing.get_context("spawn").Process(target=_echo, args=(requests, answers))
    child.start()
    requests.put_many([3, 4])
    assert has_message(answers, PATIENCE_S)
    assert answers.get_many() == [3, 4]
    requests.stop()
    child.join()
    with pytest.raises(StopRequested):
        answers.get_many()
