"""A loader whose learner may be held up by other ranks: then the sampler goes on, and the oldest data is lost."""

from __future__ import annotations

import threading

import gymnasium as gym
import numpy as np
import pytest

from sf.envs import EnvSpec
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.batches.loaders import SlotCopier
from sf.learner.batches.yielding_loader import YieldingLoader
from sf.shared.queues import PipeQueue
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.slots import FREE, SlotPool
from sf.system.processes.stopping import StopFlag

T, NUM_SLOTS, NUM_COLUMNS = 2, 4, 3
PATIENCE_S = 30.0
SPEC = EnvSpec(
    obs_space=gym.spaces.Dict({"obs": gym.spaces.Box(-1, 1, (2,), np.float32)}), action_space=gym.spaces.Discrete(3)
)


class System:
    """Four actors with a slot each, and the loader of the second of two policies. Trajectory k has k as its reward."""

    def __init__(self):
        inbox = PipeQueue(1000)
        self.pool = SlotPool.allocate(
            SPEC, T, inboxes=(inbox,), groups_per_worker=4, slots_per_group=1, actors_per_group=1, num_policies=2
        )
        buffers = tuple(BatchBuffer(self.pool.arrays, NUM_COLUMNS, 0, "cpu") for _ in range(2))
        self.stop = StopFlag()
        copier = SlotCopier(self.pool.of_learner(1), RecurrentStates(0, NUM_SLOTS, NUM_SLOTS), SPEC)
        self.loader = YieldingLoader(self.pool.of_learner(1), copier, buffers, "cpu", self.stop)
        self.num_filled = 0
        self._pause = threading.Event()

    def fill(self, count):
        """Trajectories one after the other, each as soon as its slot is free."""
        for _ in range(count):
            group_idx = self.num_filled % NUM_SLOTS
            self.until(lambda group_idx=group_idx: self.pool.arrays["state"][group_idx] == FREE)
            worker = self.pool.of_worker()
            slots = worker.take(group_idx, 1)
            self.pool.arrays["policy"][slots] = 1
            self.pool.arrays["reward"][slots] = self.pool.arrays["env_steps"][slots] = self.num_filled
            worker.hand_over(slots)
            self.num_filled += 1

    def until(self, condition):
        for _ in range(int(PATIENCE_S / 0.001)):
            if condition():
                return
            self._pause.wait(0.001)
        pytest.fail("it hangs")

    def num_free(self):
        return np.count_nonzero(self.pool.arrays["state"] == FREE)

    def next(self):
        """Numbers of the trajectories of the next batch."""
        batch = self.loader.next()
        return None if batch is None else sorted(batch.reward[0].int().tolist())


@pytest.fixture
def system():
    made = System()
    yield made
    made.stop.set()
    made.pool.full[1].stop()


def test_batches_come_in_the_order_of_the_slots_and_nothing_is_lost(system):
    for first in (0, 3, 6):
        system.fill(NUM_COLUMNS)
        assert system.next() == [first, first + 1, first + 2]
        assert system.loader.env_steps == 3 * first + 3
        system.loader.release()
    assert system.loader.pop_lost_steps() == 0


def test_a_learner_that_trains_holds_the_sampler_back(system):
    system.fill(NUM_COLUMNS)
    assert system.next() == [0, 1, 2]
    system.fill(NUM_COLUMNS + NUM_SLOTS)  # the next batch, and all slots
    system.until(lambda: system.num_free() == 0)
    assert system.loader.pop_lost_steps() == 0
    system.loader.release()
    assert system.next() == [3, 4, 5]


def test_while_the_learner_is_held_up_the_sampler_goes_on_and_the_oldest_is_lost(system):
    system.fill(NUM_COLUMNS)
    assert system.next() == [0, 1, 2]
    with system.loader.held_up():
        system.fill(10)
        system.until(lambda: system.num_free() == NUM_SLOTS)
    system.loader.release()
    assert system.next() == [10, 11, 12]  # the latest of 3 to 12
    assert system.loader.pop_lost_steps() == sum(range(3, 10))
    assert system.loader.pop_lost_steps() == 0
    system.loader.release()
    system.fill(NUM_COLUMNS)
    assert system.next() == [13, 14, 15]


def test_a_stop_ends_the_batches(system):
    system.fill(1)
    system.stop.set()
    assert system.next() is None


def test_what_ends_the_thread_is_raised(system, monkeypatch):
    def fails(*words):
        raise OSError("no memory")

    monkeypatch.setattr(system.loader._copier, "copy", fails)
    system.fill(1)
    with pytest.raises(OSError, match="no memory"):
        system.next()
