"""A batch on its way to a GPU that does everything late."""

import gymnasium as gym
import numpy as np
import pytest
from late import late_gpu

from sf.envs import EnvSpec
from sf.learner.batches import batch
from sf.learner.batches import buffer as buffer_module
from sf.learner.batches.buffer import BatchBuffer
from sf.shared.queues import PipeQueue
from sf.shared.slots import SlotPool

SPEC = EnvSpec(
    obs_space=gym.spaces.Dict({"obs": gym.spaces.Box(-1, 1, (2,), np.float32)}), action_space=gym.spaces.Discrete(3)
)


@pytest.fixture
def buffer(monkeypatch):
    gpu = late_gpu()
    for module in (batch, buffer_module):
        monkeypatch.setattr(module, "gpu", gpu)
    gpu.take("cuda:0")
    pool = SlotPool.allocate(
        SPEC, 3, inboxes=(PipeQueue(10),), groups_per_worker=1, slots_per_group=2, actors_per_group=2, num_policies=1
    )
    made = BatchBuffer(pool.arrays, 2, 0, "cuda:0")
    for tensor in (*made.batch.tensors(), *made.host.tensors()):
        tensor.zero_()
    return made


def fill(buffer, number):
    for tensor in buffer.host.tensors():
        tensor.fill_(number)


def test_what_is_received_is_what_was_sent(buffer):
    for number in (1, 0, 1):
        buffer.wait_until_sent()
        fill(buffer, number)
        buffer.send()
        received = buffer.receive()
        assert all((tensor == number).all() for tensor in received.tensors())
        buffer.release()


def test_before_it_is_received_nothing_need_have_come(buffer):
    fill(buffer, 1)
    buffer.send()
    assert not buffer.batch.reward.any()
    buffer.receive()
    assert buffer.batch.reward.all()


def test_the_host_may_be_filled_anew_once_it_waited_for_the_transfer(buffer):
    fill(buffer, 1)
    buffer.send()
    buffer.wait_until_sent()
    fill(buffer, 0)
    assert buffer.receive().reward.all()


def test_a_transfer_stands_behind_the_training_on_the_batch_before(buffer, monkeypatch):
    done = []
    fill(buffer, 1)
    buffer.send()
    buffer.receive()
    batch.gpu._queue_of_thread().add(lambda: done.append("trained"))
    buffer.release()
    monkeypatch.setattr(buffer.batch.reward, "copy_", lambda source: done.append("sent"), raising=False)
    buffer.send()
    assert done == []
    buffer.wait_until_sent()
    assert done == ["trained", "sent"]


def test_on_cpu_the_batch_is_the_one_that_is_filled():
    pool = SlotPool.allocate(
        SPEC, 3, inboxes=(PipeQueue(10),), groups_per_worker=1, slots_per_group=2, actors_per_group=2
    )
    made = BatchBuffer(pool.arrays, 2, 0, "cpu")
    assert made.receive() is made.host
