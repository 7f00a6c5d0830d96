"""The state of the learner in shared memory: what is read is whole, whenever the learner was killed, or goes on."""

import copy
import errno
import math
import os
import random
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from halfway import Accesses, HalfwayArray, Killed
from victims import fork, kill
from waiting import has_message

from sf.shared.queues import PipeQueue
from sf.shared.recovery import RecoveryMemory, save_remembered
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint

DTYPES = [
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]


def state(number, size=100):
    """All of whose content says which one it is."""
    tensors = {"weights": torch.full((size,), float(number)), "step": torch.tensor(float(number))}
    return Checkpoint(tensors, {"number": number, "size": size})


def assert_whole(found):
    number, size = found.state["number"], found.state["size"]
    assert torch.equal(found.tensors["weights"], torch.full((size,), float(number)))
    assert found.tensors["step"] == number
    return number


def test_before_the_first_write_there_is_nothing():
    assert RecoveryMemory(capacity=10).read() is None


def test_what_was_written_last_is_read_whatever_its_size():
    memory = RecoveryMemory(capacity=5000)
    for number, size in enumerate([3, 1000, 4, 0, 7]):
        memory.write(state(number, size))
        assert assert_whole(memory.read()) == assert_whole(memory.read()) == number


def test_every_kind_of_tensor_comes_back_as_it_was():
    tensors = {f"{dtype}/{shape}": torch.randn(shape).to(dtype) for dtype in DTYPES for shape in ((), (0,), (3, 5))}
    tensors["rng"] = torch.get_rng_state()
    image = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    memory = RecoveryMemory(capacity=1 << 16)
    memory.write(Checkpoint({**tensors, "image": image}, {"rate": math.inf, "name": "a"}))
    found = memory.read()
    assert found.state == {"rate": math.inf, "name": "a"}
    assert found.tensors.keys() == {*tensors, "image"}
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tensors.items())
    assert all(found.tensors[name].dtype == tensor.dtype for name, tensor in tensors.items())
    assert torch.equal(found.tensors["image"], image)


def test_what_was_read_does_not_change_with_later_writes():
    memory = RecoveryMemory(capacity=5000)
    memory.write(state(1))
    found = memory.read()
    for number in (2, 3, 4):
        memory.write(state(number))
    assert assert_whole(found) == 1


def test_a_state_that_was_trained_since_is_the_one_of_its_time():
    memory, weights = RecoveryMemory(capacity=5000), torch.nn.Parameter(torch.zeros(4))
    memory.write(Checkpoint({"weights": weights}, {}))
    with torch.no_grad():
        weights += 1
    assert torch.equal(memory.read().tensors["weights"], torch.zeros(4))


@pytest.mark.parametrize("num_writes", [1, 2, 3])
@pytest.mark.parametrize("at", range(12))
def test_a_reader_that_the_writer_overtakes_reads_again(at, num_writes):
    memory = RecoveryMemory(capacity=5000)
    for number in (1, 2):
        memory.write(state(number))
    reader, written = copy.copy(memory), [2]

    def write():
        for _ in range(num_writes):
            written.append(written[-1] + 1)
            memory.write(state(written[-1], size=100 + 10 * written[-1]))

    accesses = Accesses({at: write})
    names = ("data", "num_bytes", "header_bytes", "number", "latest")
    reader._arrays = {name: HalfwayArray(memory._arrays[name], accesses) for name in names}
    assert assert_whole(reader.read()) in written


def write_half(memory, number):
    """As a learner that is killed between the tensors."""
    half = state(number)
    no_tensor = SimpleNamespace(dtype=torch.float32, shape=())
    half = Checkpoint({"weights": half.tensors["weights"], "step": no_tensor}, half.state)
    with pytest.raises(TypeError):
        memory.write(half)


@pytest.mark.parametrize("at", range(8))
def test_a_reader_that_is_overtaken_by_half_a_write_reads_again(at):
    memory = RecoveryMemory(capacity=5000)
    for number in (1, 2):
        memory.write(state(number))
    reader = copy.copy(memory)

    def write():
        memory.write(state(3))
        write_half(memory, 4)  # where the second one was

    accesses = Accesses({at: write}, dies_at=100)
    names = ("data", "num_bytes", "header_bytes", "number", "latest")
    reader._arrays = {name: HalfwayArray(memory._arrays[name], accesses) for name in names}
    assert assert_whole(reader.read()) in (2, 3)


@pytest.mark.parametrize("dies_at", range(12))
def test_a_writer_that_dies_at_any_access_leaves_a_state_that_is_read_at_once(dies_at):
    memory = RecoveryMemory(capacity=5000)
    for number in (1, 2):
        memory.write(state(number))
    writer, arrays = copy.copy(memory), memory._arrays
    accesses = Accesses(dies_at=dies_at)
    names = ("num_bytes", "header_bytes", "number", "latest")
    writer._arrays = {name: HalfwayArray(arrays[name], accesses) for name in names} | {"data": arrays["data"]}
    with suppress(Killed):
        writer.write(state(3))
    looks = Accesses(dies_at=100)  # instead of looking for ever
    memory._arrays = {name: HalfwayArray(arrays[name], looks) for name in (*names, "data")}
    assert assert_whole(memory.read()) in (2, 3)


def write_for_ever(memory, start, written):
    for number in range(start, 2**24):  # as far as float32 counts
        memory.write(state(number, 1_000_000 - number % 1000))
        written.put(number)


def test_a_writer_that_is_killed_at_any_moment_leaves_its_last_state_or_the_one_before_whole():
    memory, written = RecoveryMemory(capacity=4_001_000), PipeQueue(capacity=10)
    rng = random.Random(0)
    number = 0
    for _ in range(40):
        pid = fork(write_for_ever, memory, number + 1, written)
        for _ in range(rng.randint(1, 8)):
            assert has_message(written, within_s=60.0)
            number = written.get_many()[-1]
            assert assert_whole(memory.read()) >= number  # also while it goes on
        kill(pid)
        while written.has_messages():
            number = written.get_many()[-1]
        found = assert_whole(memory.read())
        assert found in (number, number + 1)  # it may have died before it could tell
        number = found


def test_what_a_learner_remembered_is_saved_where_the_newest_checkpoint_cannot_be_read(tmp_path, monkeypatch):
    memory = RecoveryMemory(capacity=5000)
    memory.write(Checkpoint({"weights": torch.ones(3)}, {"env_steps": 1280}))
    earlier = checkpoint.save(tmp_path, Checkpoint({}, {}), 640, keep=2)

    def fail(_path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        saved = save_remembered(memory, tmp_path, keep=2)
    assert checkpoint.load(saved).state == {"env_steps": 1280}
    assert sorted(tmp_path.iterdir()) == [earlier, saved]
