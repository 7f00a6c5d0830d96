"""The accounting of slots: every slot has one owner, and is in one place."""

from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from envs import EnvSpec
from sf.queues import STOP, IndexQueue
from sf.slots import FIRST_ROLLOUT_WORKER, FREE, LEARNER, SlotPool, StopRequested, bytes_per_slot

SPEC = EnvSpec(
    obs_space=gym.spaces.Dict(
        {
            "image": gym.spaces.Box(0, 255, (6, 4, 3), np.uint8),
            "vector": gym.spaces.Box(-1, 1, (5,), np.float32),
        }
    ),
    action_space=gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(-1, 1, (2,)))),
)


class SlotLife(RuleBasedStateMachine):
    """Rollout workers take and fill slots, the learner takes and gives back, in any order."""

    def __init__(self):
        super().__init__()
        self.pool = SlotPool.allocate(SPEC, num_slots=7, rollout=2)
        self.filling = {0: [], 1: [], 2: []}
        self.full = []
        self.training = []

    @property
    def num_free(self):
        return 7 - len(self.full) - len(self.training) - sum(map(len, self.filling.values()))

    @rule(worker=st.sampled_from([0, 1, 2]), count=st.integers(1, 3))
    def take(self, worker, count):
        taken = self.pool.take(count, worker, wait=False)
        assert len(taken) == min(count, self.num_free)
        self.filling[worker] += taken

    @rule(worker=st.sampled_from([0, 1, 2]), count=st.integers(1, 3))
    def hand_over(self, worker, count):
        handed, self.filling[worker] = self.filling[worker][:count], self.filling[worker][count:]
        if handed:
            self.pool.hand_over(handed)
            self.full += handed

    @precondition(lambda self: self.full)
    @rule(count=st.integers(1, 4))
    def learner_takes(self, count):
        taken = self.pool.full.get_many(at_most=count)
        assert taken == self.full[: len(taken)]
        self.full = self.full[len(taken) :]
        self.training += taken

    @precondition(lambda self: self.training)
    @rule(count=st.integers(1, 4))
    def give_back(self, count):
        returned, self.training = self.training[:count], self.training[count:]
        self.pool.give_back(returned)

    @invariant()
    def every_slot_is_in_one_place_and_its_owner_says_where(self):
        owner = self.pool.arrays["owner"]
        held = [slot for slots in (*self.filling.values(), self.full, self.training) for slot in slots]
        assert max(Counter(held).values(), default=1) == 1
        for worker, slots in self.filling.items():
            assert all(owner[slot] == FIRST_ROLLOUT_WORKER + worker for slot in slots)
        assert all(owner[slot] == LEARNER for slot in self.full + self.training)
        assert np.count_nonzero(owner == FREE) == self.num_free

    def teardown(self):
        self.pool.free.put(STOP)
        left = []
        while STOP not in left:
            left += self.pool.free.get_many()
        assert len(left) == len(set(left)) == self.num_free + 1


TestSlotLife = SlotLife.TestCase
TestSlotLife.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_a_stop_wakes_every_worker_that_waits_for_a_slot():
    pool = SlotPool.allocate(SPEC, num_slots=1, rollout=2)
    assert pool.take(2, worker_idx=0, wait=True) == [0]
    pool.free.put(STOP)
    for worker in range(3):
        with pytest.raises(StopRequested):
            pool.take(1, worker, wait=True)


def test_the_schema_keeps_integers_integers_and_has_one_more_row_of_observations():
    pool = SlotPool.allocate(SPEC, num_slots=4, rollout=8)
    arrays = pool.arrays
    assert arrays["obs/image"].shape == (4, 9, 6, 4, 3)
    assert arrays["obs/image"].dtype == np.uint8
    assert arrays["obs/vector"].shape == (4, 9, 5)
    assert arrays["first"].shape == (4, 9)
    assert arrays["discrete"].shape == (4, 8, 1)
    assert arrays["discrete"].dtype == np.int32
    assert arrays["continuous"].shape == (4, 8, 2)
    assert arrays["reward"].shape == (4, 8)


def test_bytes_per_slot_counts_every_field():
    rollout = 8
    per_row = 6 * 4 * 3 + 5 * 4 + 1
    per_step = 4 + 2 * 4 + 4 * 4 + 3
    assert bytes_per_slot(SPEC, rollout) == (rollout + 1) * per_row + rollout * per_step + 8


def test_a_queue_gives_indices_in_their_order():
    queue = IndexQueue(capacity=1000)
    queue.put_many(range(999))
    queue.put(STOP)
    assert queue.get_many(at_most=3) == [0, 1, 2]
    got = []
    while STOP not in got:
        got += queue.get_many()
    assert got == [*range(3, 999), STOP]
