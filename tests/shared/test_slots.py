"""Slots: one owner each, whoever dies and whenever; nothing is lost, and nothing is taken twice."""

import dataclasses
import itertools
import random
from contextlib import suppress
from functools import cache, partial

import gymnasium as gym
import numpy as np
import pytest
from halfway import LIFE_SETTINGS, Accesses, HalfwayArray, HalfwayQueue, Killed, WouldWait
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sf.envs import EnvSpec
from sf.shared.queues import PipeQueue, StopRequested
from sf.shared.rows import bytes_per_slot
from sf.shared.slots import FILLING, FREE, FULL, TRAINING, SlotPool

SPEC = EnvSpec(
    obs_space=gym.spaces.Dict(
        {
            "image": gym.spaces.Box(0, 255, (6, 4, 3), np.uint8),
            "vector": gym.spaces.Box(-1, 1, (5,), np.float32),
        }
    ),
    action_space=gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(-1, 1, (2,)))),
)


def make_inboxes(num_workers):
    return tuple(PipeQueue(1000) for _ in range(num_workers))


@cache
def make_pool(num_workers=2, groups_per_worker=2, slots_per_group=3, actors_per_group=2, rollout=2):
    return SlotPool.allocate(
        SPEC,
        rollout,
        inboxes=make_inboxes(num_workers),
        groups_per_worker=groups_per_worker,
        slots_per_group=slots_per_group,
        actors_per_group=actors_per_group,
    )


def new_pool(**sizes):
    pool = make_pool(**sizes)
    pool.reset()
    pool.arrays["env_steps"][:] = pool.arrays["reward"].shape[1]
    for name in ("count", "after"):
        pool.taken[name][:] = 0
    return pool


LEARNER = -1  # rollout workers are 0, 1, ...
SIZES = [(1, 1, 1), (2, 2, 3), (3, 1, 2)]  # workers, groups of each, slots of each

actions = st.tuples(st.just(LEARNER) | st.integers(0, 5), st.integers(0, 3), st.integers(1, 4))  # process, gives, takes
access_numbers = st.integers(0, 7)
in_between = st.dictionaries(access_numbers, actions, min_size=1, max_size=3)


class SlotLife(RuleBasedStateMachine):
    """Rollout workers fill slots and the learner takes them; each may die, and others run, at each of its accesses.

    Each filling of a slot has a number, which is written into the slot. What a process holds is known from what it was
    told; the table itself is asked only where a process has died.
    """

    @initialize(sizes=st.sampled_from(SIZES), copies=st.integers(1, 2))
    def begin(self, sizes, copies):
        self.num_workers, groups_per_worker, slots_per_group = sizes
        self.pool = new_pool(
            num_workers=self.num_workers,
            groups_per_worker=groups_per_worker,
            slots_per_group=slots_per_group,
            actors_per_group=1,
        )
        self.slots_per_worker = groups_per_worker * slots_per_group
        self.copies = copies  # of each message
        self.state = self.pool.arrays["state"]
        self.dead = set()
        self.filling = [[] for _ in range(self.num_workers)]  # that a worker holds
        self.handing_over = [[] for _ in range(self.num_workers)]  # that it is about to hand over
        self.training = []  # that the learner holds
        self.numbers = itertools.count(1)
        self.sent = set()  # numbers of fillings that were handed over
        self.received = set()  # those that the learner got, or took to its grave

    @rule(one_by_one=st.lists(actions, min_size=2, max_size=12))
    def some_act(self, one_by_one):
        for action in one_by_one:
            self.act(action, {})

    @rule(action=actions, meanwhile=in_between)
    def someone_is_interrupted(self, action, meanwhile):
        self.act(action, meanwhile)

    @rule(action=actions, dies_at=access_numbers, meanwhile=in_between)
    def someone_dies(self, action, dies_at, meanwhile):
        process = self.process_of(action)
        if process not in self.dead:
            with suppress(Killed):
                self.act(action, meanwhile, dies_at)
            self.bury(process)

    @precondition(lambda self: self.dead)
    @rule(data=st.data(), meanwhile=in_between)
    def someone_is_replaced(self, data, meanwhile):
        self.replace(data.draw(st.sampled_from(sorted(self.dead))), meanwhile)

    @rule(slots=st.sets(st.integers(0, 11)), to_learner=st.booleans())
    def messages_are_sent_again(self, slots, to_learner):
        for slot in {slot % self.pool.num_slots for slot in slots}:
            if to_learner:
                self.pool.full[0].put(slot)
            else:
                self.pool.inboxes[slot // self.slots_per_worker].put(slot // self.pool.slots_per_group)

    @invariant()
    def every_slot_is_held_by_the_one_that_its_state_names(self):
        assert set(self.state.tolist()) <= {FREE, FILLING, FULL, TRAINING}
        for worker_idx in set(range(self.num_workers)) - self.dead:
            first = worker_idx * self.slots_per_worker
            own = self.state[first : first + self.slots_per_worker]
            assert sorted(self.filling[worker_idx]) == (first + np.flatnonzero(own == FILLING)).tolist()
        if LEARNER not in self.dead:
            assert sorted(self.training) == np.flatnonzero(self.state == TRAINING).tolist()
            assert self.pool.env_steps_taken() == len(self.received) * self.pool.arrays["reward"].shape[1]

    def teardown(self):
        """Drive everything to rest: nothing is lost."""
        for process in sorted(self.dead):
            self.replace(process, {})
        for worker_idx in range(self.num_workers):
            self.hand_over(worker_idx, self.pool.num_slots, self.pool)
        while self.pool.full[0].has_messages():
            self.act((LEARNER, 0, 100), {})
        assert self.received == self.sent
        self.give_back(self.pool.num_slots, self.pool)
        assert (self.state == FREE).all()
        for worker_idx, inbox in enumerate(self.pool.inboxes):
            while inbox.has_messages():
                self.take(worker_idx, self.pool)
            first = worker_idx * self.slots_per_worker
            assert sorted(self.filling[worker_idx]) == list(range(first, first + self.slots_per_worker))

    def act(self, action, meanwhile, dies_at=None):
        """One round of a process: it gives what it is done with, and takes what is there."""
        process, (_, gives, takes) = self.process_of(action), action
        if process in self.dead:
            return
        pool = self.halfway(self.accesses(process, meanwhile, dies_at))
        if process == LEARNER:
            self.give_back(gives, pool)
            self.train_on(takes, pool)
        else:
            self.hand_over(process, gives, pool)
            self.take(process, pool)

    def halfway(self, accesses):
        """The pool as a process sees it that may be stopped halfway."""
        return dataclasses.replace(
            self.pool,
            arrays={
                "state": HalfwayArray(self.state, accesses),
                "policy": self.pool.arrays["policy"],
                "env_steps": self.pool.arrays["env_steps"],
            },
            taken={name: HalfwayArray(self.pool.taken[name], accesses) for name in ("count", "after")},
            inboxes=tuple(HalfwayQueue(queue, accesses, self.copies) for queue in self.pool.inboxes),
            full=tuple(HalfwayQueue(queue, accesses, self.copies) for queue in self.pool.full),
        )

    def accesses(self, process, meanwhile, dies_at=None):
        """With rounds of other processes in between."""
        others = {at: action for at, action in meanwhile.items() if self.process_of(action) != process}
        return Accesses({at: partial(self.act, action, {}) for at, action in others.items()}, dies_at)

    def process_of(self, action):
        return action[0] if action[0] == LEARNER else action[0] % self.num_workers

    def take(self, worker_idx, pool):
        try:
            groups = pool.inboxes[worker_idx].get_many()
        except WouldWait:
            return
        worker = pool.of_worker()
        for group in groups:
            while slots := worker.take(group, 1):
                assert [slot // pool.slots_per_group for slot in slots] == [group]
                self.pool.arrays["reward"][slots] = next(self.numbers)
                self.filling[worker_idx] += slots

    def hand_over(self, worker_idx, count, pool):
        slots, self.filling[worker_idx] = self.filling[worker_idx][:count], self.filling[worker_idx][count:]
        self.sent.update(map(self.number_in, slots))
        self.handing_over[worker_idx] = slots
        pool.of_worker().hand_over(slots)
        self.handing_over[worker_idx] = []

    def train_on(self, count, pool):
        try:
            slots = pool.of_learner().take(count)
        except WouldWait:
            return
        assert 0 < len(slots) <= count
        numbers = [self.number_in(slot) for slot in slots]
        assert len(set(numbers)) == len(numbers)
        assert self.received.isdisjoint(numbers)
        self.received.update(numbers)
        self.training += slots

    def give_back(self, count, pool):
        slots, self.training = self.training[:count], self.training[count:]
        pool.of_learner().give_back(slots)

    def number_in(self, slot):
        return int(self.pool.arrays["reward"][slot, 0])

    def bury(self, process):
        self.dead.add(process)
        if process == LEARNER:
            self.received.update(self.number_in(slot) for slot in np.flatnonzero(self.state == TRAINING))
            self.training = []
        else:
            unsent = [slot for slot in self.handing_over[process] if self.state[slot] == FILLING]
            self.sent.difference_update(map(self.number_in, unsent))
            self.filling[process] = []
            self.handing_over[process] = []

    def replace(self, process, meanwhile):
        pool = self.halfway(self.accesses(process, meanwhile))
        if process == LEARNER:
            pool.recover_learner()
        else:
            pool.recover_worker(process)
        self.dead.remove(process)


TestSlotLife = pytest.mark.timeout(400)(SlotLife.TestCase)  # a failure is shrunk for minutes
TestSlotLife.settings = LIFE_SETTINGS


@pytest.mark.parametrize("seed", range(200))
def test_no_slot_is_lost_in_a_life_with_many_deaths(seed):
    rng = random.Random(seed)
    repeats_messages = rng.random() < 0.5  # else that would hide that some are lost

    def action():
        return rng.choice([LEARNER, rng.randrange(6)]), rng.randrange(4), rng.randint(1, 4)

    life = SlotLife()
    life.begin(sizes=rng.choice(SIZES), copies=rng.randint(1, 2))
    for _ in range(60):
        meanwhile = {rng.randrange(rng.choice([2, 8])): action() for _ in range(rng.randrange(3))}
        if life.dead and rng.random() < 0.3:
            life.replace(rng.choice(sorted(life.dead)), meanwhile)
        elif rng.random() < 0.2:
            life.someone_dies(action(), rng.randrange(8), meanwhile)
        elif repeats_messages and rng.random() < 0.3:
            life.messages_are_sent_again(rng.sample(range(12), 4), rng.random() < 0.5)
        else:
            life.act(action(), meanwhile)
        life.every_slot_is_held_by_the_one_that_its_state_names()
    life.teardown()


def test_the_learner_gets_slots_in_the_order_in_which_they_were_filled():
    pool = new_pool()
    for slots in ([4, 2], [9], [0, 5]):
        pool.of_worker().hand_over(slots)
    assert pool.of_learner().take(at_most=3) == [4, 2, 9]
    assert pool.of_learner().take(at_most=3) == [0, 5]


def test_a_new_pool_and_one_that_was_reset_offer_every_worker_its_own_slots():
    pool = new_pool()
    for _ in range(2):
        assert [inbox.get_many() for inbox in pool.inboxes] == [[0, 1], [2, 3]]
        worker = pool.of_worker()
        assert [worker.take(0, 3), worker.take(1, 3)] == [[0, 1, 2], [3, 4, 5]]
        worker.hand_over([0, 1, 2])
        pool.of_learner().take(at_most=2)
        pool.reset()
        assert not pool.full[0].has_messages()


def test_a_group_gets_as_many_slots_as_it_needs_or_none():
    pool = new_pool()
    worker = pool.of_worker()
    assert worker.take(0, 2) == [0, 1]
    assert worker.take(0, 2) == []
    worker.hand_over([0])
    pool.of_learner().give_back(pool.of_learner().take(at_most=1))
    assert worker.take(0, 2) == [0, 2]
    assert pool.arrays["state"][:3].tolist() == [FILLING] * 3


@pytest.mark.parametrize(
    ("states", "can"),
    [
        ((FILLING, FILLING, FULL), True),
        ((FULL, FREE, FREE), True),
        ((FULL, TRAINING, FREE), False),  # two actors need two slots
        ((FULL, FULL, TRAINING), False),
    ],
)
def test_a_group_can_go_on_where_it_fills_slots_or_has_enough_to_begin(states, can):
    pool = new_pool()
    pool.arrays["state"][:] = FREE if not can else TRAINING  # those of the other groups do not matter
    pool.arrays["state"][3:6] = states
    assert pool.can_go_on(1) is can


def test_slots_that_are_given_back_are_told_of_once_a_group():
    pool = new_pool()
    for inbox in pool.inboxes:
        inbox.drain()
    pool.of_learner().give_back([4, 0, 9, 3, 1])
    assert [inbox.get_many() for inbox in pool.inboxes] == [[1, 0], [3]]


def test_a_stop_among_the_messages_is_raised_to_the_learner():
    pool = new_pool()
    pool.full[0].put(0)
    pool.full[0].stop()
    with pytest.raises(StopRequested):
        pool.of_learner().take(at_most=5)


@given(
    num_groups=st.integers(1, 4),
    actors_per_group=st.integers(1, 4),
    extra=st.integers(0, 5),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_the_supply_beside_held_slots_is_that_of_groups_which_fill_all_they_can(
    num_groups, actors_per_group, extra, data
):
    slots_per_group = actors_per_group + extra
    num_slots = num_groups * slots_per_group
    held = data.draw(st.sets(st.integers(0, num_slots - 1)))
    supply = 0
    for group_idx in range(num_groups):
        free = set(range(group_idx * slots_per_group, (group_idx + 1) * slots_per_group)) - held
        while len(free) >= actors_per_group:
            for _ in range(actors_per_group):
                free.pop()
            supply += actors_per_group
    some = new_pool().of_learner()
    learner = dataclasses.replace(
        some,
        arrays={"state": np.zeros(num_slots, np.int32)},
        slots_per_group=slots_per_group,
        actors_per_group=actors_per_group,
    )
    assert learner.supply_beside(held) == supply


def test_the_schema_keeps_integers_integers_and_has_one_more_row_of_observations():
    arrays = new_pool(rollout=8).arrays
    assert arrays["obs/image"].shape == (12, 9, 6, 4, 3)
    assert arrays["obs/image"].dtype == np.uint8
    assert arrays["obs/vector"].shape == (12, 9, 5)
    assert arrays["first"].shape == (12, 9)
    assert arrays["discrete"].shape == (12, 8, 1)
    assert arrays["discrete"].dtype == np.int32
    assert arrays["continuous"].shape == (12, 8, 2)
    assert arrays["reward"].shape == (12, 8)


def test_bytes_per_slot_counts_every_field():
    rollout = 8
    per_row = 6 * 4 * 3 + 5 * 4 + 1
    per_step = 4 + 2 * 4 + 4 * 4 + 2
    assert bytes_per_slot(SPEC, rollout) == (rollout + 1) * per_row + rollout * per_step + 16


def test_the_learner_of_a_policy_gets_its_slots_and_what_another_holds_is_not_its_business():
    pool = SlotPool.allocate(
        SPEC, 2, inboxes=make_inboxes(2), groups_per_worker=1, slots_per_group=3, actors_per_group=1, num_policies=2
    )
    state = pool.arrays["state"]
    pool.arrays["policy"][:] = [0, 1, 0, 1, 1, 0]
    for worker_idx in range(2):
        worker = pool.of_worker()
        worker.hand_over(worker.take(worker_idx, 3))
    learners = [pool.of_learner(policy_id) for policy_id in range(2)]
    assert learners[0].take(at_most=2) == [0, 2]
    assert learners[1].take(at_most=2) == [1, 3]
    pool.recover_learner(1)
    assert state.tolist() == [TRAINING, FREE, TRAINING, FREE, FULL, FULL]
    assert pool.full[0].get_many() == [5]
    assert pool.full[1].get_many() == [4]
    pool.recover_worker(1)
    assert pool.full[0].get_many() == [5]
    assert pool.full[1].get_many() == [4]
    assert learners[0].supply_beside([]) == learners[1].supply_beside([]) == 0


def test_full_slots_that_are_given_up_count_as_taken_by_the_learner_of_their_policy():
    pool = SlotPool.allocate(
        SPEC,
        3,
        inboxes=make_inboxes(1),
        groups_per_worker=1,
        slots_per_group=6,
        actors_per_group=6,
        num_policies=2,
    )
    worker = pool.of_worker()
    taken = worker.take(0, 6)
    pool.arrays["policy"][:] = [0, 1, 0, 1, 1, 0]
    pool.arrays["env_steps"][:] = [3, 2, 1, 3, 0, 3]
    worker.hand_over(taken[:5])
    learner = pool.of_learner(1)
    learner.give_back(learner.take(at_most=1))
    learner.take(at_most=1)
    pool.reset()
    assert [pool.env_steps_taken(policy_id) for policy_id in range(2)] == [3 + 1, 2 + 3 + 0]
    assert (pool.arrays["state"] == FREE).all()


def test_a_message_that_was_repeated_gives_no_learner_the_slot_of_another():
    pool = SlotPool.allocate(
        SPEC, 2, inboxes=make_inboxes(1), groups_per_worker=1, slots_per_group=2, actors_per_group=2, num_policies=2
    )
    worker, learner = pool.of_worker(), pool.of_learner(0)
    pool.arrays["policy"][:] = 0
    worker.hand_over(worker.take(0, 2))
    pool.recover_worker(0)  # both slots are full, and told of once more
    assert learner.take(at_most=2) == [0, 1]
    learner.give_back([0, 1])
    pool.arrays["policy"][worker.take(0, 2)] = 1
    worker.hand_over([0, 1])
    pool.full[0].stop()
    with pytest.raises(StopRequested):
        learner.take(at_most=2)
    assert pool.of_learner(1).take(at_most=2) == [0, 1]


def test_beside_players_the_supply_is_what_is_begun_for_the_policy_that_learns():
    pool = SlotPool.allocate(
        SPEC, 2, inboxes=make_inboxes(2), groups_per_worker=1, slots_per_group=3, actors_per_group=3, has_seats=True
    )
    worker, learner, player = pool.of_worker(), pool.of_learner(), 1
    assert learner.supply_beside([]) == 0
    pool.arrays["policy"][:] = [0, player, 0, 0, 0, player]
    slots = worker.take(0, 3)
    assert learner.supply_beside([]) == 2
    worker.hand_over(slots)
    held = learner.take(at_most=1)
    assert learner.supply_beside(held) == 1
    worker.take(1, 3)
    assert learner.supply_beside(held) == 3
    pool.recover_worker(1)
    worker.take(1, 3, np.array([player, 0, player]))
    assert learner.supply_beside(held) == 2
    pool.recover_worker(1)
    worker.take(1, 3, np.array([0, 0, player]))
    pool.recover_worker(1)
    assert learner.take(at_most=1) == [2]
    assert learner.take(at_most=1) == []  # the word that there is less than it was
    assert learner.supply_beside([0, 2]) == 0


@pytest.mark.parametrize("who_is_interrupted", ["rollout worker", "learner"])
@pytest.mark.parametrize("at", range(7))
def test_slots_that_are_begun_for_players_count_for_no_learner_at_any_moment(at, who_is_interrupted):
    pool = SlotPool.allocate(
        SPEC, 2, inboxes=make_inboxes(1), groups_per_worker=1, slots_per_group=3, actors_per_group=3, has_seats=True
    )
    pool.arrays["policy"][:] = 0  # that learns, and had the slots before
    players = np.ones(3, np.int32)
    found = []

    def begin(arrays):
        dataclasses.replace(pool, arrays=arrays).of_worker().take(0, 3, players)

    def count(arrays):
        found.append(dataclasses.replace(pool, arrays=arrays).of_learner().supply_beside([]))

    interrupted, meanwhile = (begin, count) if who_is_interrupted == "rollout worker" else (count, begin)
    accesses = Accesses({at: lambda: meanwhile(pool.arrays)})
    interrupted({name: HalfwayArray(pool.arrays[name], accesses) for name in ("state", "policy")})
    count(pool.arrays)
    assert set(found) == {0}
