"""The state of the learner in shared memory: what is read is whole, whenever the learner was killed."""

import random

import pytest
from victims import fork, kill

from sf.queues import IndexQueue, wait
from sf.recovery import RecoveryMemory


def test_before_the_first_write_there_is_nothing():
    assert RecoveryMemory(capacity=10).read() is None


@pytest.mark.parametrize("sizes", [[3], [10, 4, 0, 7], [0, 10]])
def test_the_last_write_is_read_at_its_own_length(sizes):
    memory = RecoveryMemory(capacity=10)
    for number, size in enumerate(sizes):
        data = bytes(number + byte for byte in range(size))
        memory.write(data)
        assert memory.read() == memory.read() == data


def write_for_ever(memory, start, written):
    for number in range(start, 2**31):
        size = 4_000_000 - number % 1000
        memory.write(number.to_bytes(4, "little") + bytes([number % 256]) * size)
        written.put(number)


def test_a_writer_that_is_killed_at_any_moment_leaves_its_last_data_or_those_before_whole():
    memory, written = RecoveryMemory(capacity=4 + 4_000_000), IndexQueue(capacity=10)
    rng = random.Random(0)
    number = 0
    for _ in range(40):
        pid = fork(write_for_ever, memory, number + 1, written)
        for _ in range(rng.randint(1, 8)):
            assert wait([written], timeout_s=60.0)
            number = written.get_many()[-1]
        kill(pid)
        while written.has_messages():
            number = written.get_many()[-1]
        data = memory.read()
        found = int.from_bytes(data[:4], "little")
        assert found in (number, number + 1)  # it may have died before it could tell
        assert data[4:] == bytes([found % 256]) * (4_000_000 - found % 1000)
        number = found
