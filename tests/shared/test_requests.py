"""Requests and answers: every request is answered once, whoever dies and whenever."""

import dataclasses
import itertools
import random
from contextlib import suppress
from functools import cache, partial

import numpy as np
import pytest
from halfway import LIFE_SETTINGS, Accesses, HalfwayArray, HalfwayQueue, Killed, WouldWait
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sf.shared.queues import StopRequested
from sf.shared.requests import Channels


@cache
def make_channels(num_workers, groups_per_worker, policy_workers_per_policy, num_policies, num_actors, has_seats):
    return Channels.allocate(
        num_workers=num_workers,
        groups_per_worker=groups_per_worker,
        slots_per_group=num_actors,
        actors_per_group=num_actors,
        policy_workers_per_policy=policy_workers_per_policy,
        num_policies=num_policies,
        has_seats=has_seats,
    )


def new_channels(
    num_workers=2, groups_per_worker=2, policy_workers_per_policy=1, num_policies=1, num_actors=1, has_seats=False
):
    """num_actors: of each group."""
    sizes = num_workers, groups_per_worker, policy_workers_per_policy, num_policies, num_actors
    channels = make_channels(*sizes, has_seats)
    channels.reset()
    return channels


def halfway(channels, accesses, copies=1):
    """The channels as a process sees them that may be stopped halfway."""
    return dataclasses.replace(
        channels,
        tables={name: HalfwayArray(channels.tables[name], accesses) for name in ("row", "asked", "answered")},
        requests=tuple(HalfwayQueue(queue, accesses, copies) for queue in channels.requests),
        inboxes=tuple(HalfwayQueue(queue, accesses, copies) for queue in channels.inboxes),
    )


ROLLOUT, POLICY = "rollout", "policy"
# Workers, groups of each, policy workers of each policy, policies.
SIZES = [(1, 1, 1, 1), (2, 2, 1, 1), (2, 2, 3, 1), (3, 1, 2, 1), (2, 1, 1, 2), (1, 2, 2, 3)]

# Role, index, stages (policy worker), or which policies a group asks (rollout worker).
actions = st.tuples(st.sampled_from([ROLLOUT, POLICY]), st.integers(0, 5), st.integers(1, 5))
access_numbers = st.integers(0, 9)
in_between = st.dictionaries(access_numbers, actions, min_size=1, max_size=3)


class PolicyProcess:
    """The work of a policy worker in stages, for others to run in between.

    For actions it writes the number and the row of the request that it takes itself to answer.
    """

    def __init__(self, written, stepping):
        self._written = written
        self._stepping = stepping
        self._rest = self._stages()
        self._channel = None
        self.is_idle = True

    def goes_on(self, channel):
        """One stage, on a channel that may be stopped halfway."""
        self._channel = channel
        next(self._rest)

    def _stages(self):
        while True:
            self.is_idle = True
            try:
                groups = self._channel.take()
            except WouldWait:
                yield
                continue
            self.is_idle = False
            assert 0 < len(groups) <= self._channel.num_groups
            assert (np.diff(groups) > 0).all()
            yield
            numbers = self._channel.numbers(groups)
            yield
            for group, number in zip(groups.tolist(), numbers.tolist(), strict=True):
                row = int(self._channel.tables["row"][group])
                key = (group, self._channel.policy_id)
                assert key not in self._stepping, "it writes over actions that are being used"
                self._written[key] = (number, row)
            yield
            self._channel.answer(groups, numbers)
            yield


class RequestLife(RuleBasedStateMachine):
    """Rollout workers ask and policy workers answer; each may die, and others run, at each of its accesses."""

    @initialize(sizes=st.sampled_from(SIZES), copies=st.integers(1, 2))
    def begin(self, sizes, copies):
        self.channels = new_channels(*sizes)
        self.copies = copies  # of each message
        self.tables = self.channels.tables
        self.num_groups = len(self.tables["row"])
        self.rows = itertools.cycle(range(5))
        self.dead = set()
        self.asked = {}  # number and row of the request, by group and policy, where an answer is waited for
        self.written = {}  # number and row, by group and policy
        self.stepping = set()  # groups, each with a policy, that use what was written
        self.workers = [self.channels.of_worker(idx) for idx in range(len(self.channels.inboxes))]
        self.policies = [PolicyProcess(self.written, self.stepping) for _ in self.channels.requests]

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

    @rule(groups=st.sets(st.integers(0, 3)), is_request=st.booleans())
    def messages_are_sent_again(self, groups, is_request):
        for group in {group % self.num_groups for group in groups}:
            if is_request:
                step = self.channels.policy_workers_per_policy
                for queue in self.channels.requests[group % step :: step]:
                    queue.put(group)
            else:
                self.channels.inboxes[group // self.channels.groups_per_worker].put(group)

    @invariant()
    def a_group_waits_for_the_number_that_it_asked_last(self):
        assert all(self.tables["asked"][p, group] == number for (group, p), (number, _) in self.asked.items())
        assert (self.tables["answered"] <= self.tables["asked"]).all()

    def teardown(self):
        """Drive everything to rest: nothing is lost. Then once more: what is left over does no harm."""
        for process in sorted(self.dead):
            self.replace(process, {})
        self.drive_to_rest()
        for worker in self.workers:
            for group in worker.groups:
                self.ask(worker, group, row=next(self.rows), policy_ids=range(self.channels.num_policies))
        self.drive_to_rest()
        # Only now: of a worker that died twice, a late answer to an old request has opened the latest one again.
        assert not any(self.channels.has_open_requests(idx) for idx in range(len(self.policies)))

    def drive_to_rest(self):
        for idx, policy in enumerate(self.policies):
            while self.channels.requests[idx].has_messages() or not policy.is_idle:
                self.act((POLICY, idx, 1), {})
        for worker in self.workers:
            while worker.inbox.has_messages():
                self.take(worker)
        assert self.asked == {}

    def act(self, action, meanwhile, dies_at=None):
        """A rollout worker takes the answers that are there, and asks again; a policy worker does a few stages."""
        process, (_, _, num_stages) = self.process_of(action), action
        if process in self.dead:
            return
        role, idx = process
        channels = halfway(self.channels, self.accesses(process, meanwhile, dies_at), self.copies)
        num_policies = self.channels.num_policies
        if role == POLICY:
            channel = channels.of_policy_worker(idx)
            for _ in range(num_stages):
                self.policies[idx].goes_on(channel)
        else:
            channel = channels.of_worker(idx)
            channel = dataclasses.replace(channel, _waiting=self.workers[idx]._waiting)
            self.take(channel)
            waiting = {group for group, _ in self.asked}
            for group in channel.groups:
                if group not in waiting:
                    policy_ids = [p for p in range(num_policies) if num_stages & (1 << p)]
                    self.ask(channel, group, next(self.rows), policy_ids or [num_stages % num_policies])

    def accesses(self, process, meanwhile, dies_at=None):
        """With actions of other processes in between."""
        others = {at: action for at, action in meanwhile.items() if self.process_of(action) != process}
        return Accesses({at: partial(self.act, action, {}) for at, action in others.items()}, dies_at)

    def process_of(self, action):
        role, idx, _ = action
        return role, idx % len(self.policies if role == POLICY else self.workers)

    def ask(self, channel, group, row, policy_ids):
        numbers = {p: int(self.tables["asked"][p, group]) + 1 for p in policy_ids}
        self.stepping -= {key for key in self.stepping if key[0] == group}
        channel.ask(group, row, policy_ids)
        self.asked |= {(group, p): (number, row) for p, number in numbers.items()}

    def take(self, channel):
        try:
            looked_at = channel.wait()
        except WouldWait:
            return
        for group in channel.take(looked_at):
            policy_ids = [p for asking, p in self.asked if asking == group]
            assert policy_ids
            for p in policy_ids:
                assert self.written[group, p] == self.asked.pop((group, p))
                self.stepping.add((group, p))

    def bury(self, process):
        self.dead.add(process)
        role, idx = process
        if role == ROLLOUT:
            groups = self.workers[idx].groups
            self.stepping -= {key for key in self.stepping if key[0] in groups}
            self.asked = {key: request for key, request in self.asked.items() if key[0] not in groups}

    def replace(self, process, meanwhile):
        role, idx = process
        channels = halfway(self.channels, self.accesses(process, meanwhile), self.copies)
        if role == POLICY:
            channels.recover_policy_worker(idx)
            self.policies[idx] = PolicyProcess(self.written, self.stepping)
        else:
            channels.recover_worker(idx)
            self.workers[idx] = self.channels.of_worker(idx)
        self.dead.remove(process)


TestRequestLife = pytest.mark.timeout(400)(RequestLife.TestCase)  # a failure is shrunk for minutes
TestRequestLife.settings = LIFE_SETTINGS


@pytest.mark.parametrize("seed", range(200))
def test_no_request_is_lost_in_a_life_with_many_deaths(seed):
    rng = random.Random(seed)
    repeats_messages = rng.random() < 0.5  # else that would hide that some are lost

    def action():
        return rng.choice([ROLLOUT, POLICY]), rng.randrange(6), rng.randint(1, 5)

    life = RequestLife()
    life.begin(sizes=rng.choice(SIZES), copies=rng.randint(1, 2))
    for _ in range(60):
        meanwhile = {rng.randrange(rng.choice([2, 10])): action() for _ in range(rng.randrange(3))}
        if life.dead and rng.random() < 0.3:
            life.replace(rng.choice(sorted(life.dead)), meanwhile)
        elif rng.random() < 0.2:
            life.someone_dies(action(), rng.randrange(10), meanwhile)
        elif repeats_messages and rng.random() < 0.3:
            life.messages_are_sent_again(rng.sample(range(6), 3), rng.random() < 0.5)
        else:
            life.act(action(), meanwhile)
        life.a_group_waits_for_the_number_that_it_asked_last()
    life.teardown()


@pytest.mark.parametrize("at", range(6))
def test_a_request_at_any_moment_of_the_recovery_of_its_policy_worker_reaches_the_next_one(at):
    channels = new_channels()
    worker = channels.of_worker(0)
    halfway(channels, Accesses({at: lambda: worker.ask(1, row=0)})).recover_policy_worker(0)
    assert halfway(channels, Accesses()).of_policy_worker(0).take().tolist() == [1]


def test_every_group_asks_the_policy_worker_that_counts_it_among_its_own():
    channels = new_channels(num_workers=3, groups_per_worker=2, policy_workers_per_policy=4)
    for worker_idx in range(3):
        worker = channels.of_worker(worker_idx)
        for group in worker.groups:
            worker.ask(group, row=0)
    policies = [channels.of_policy_worker(idx) for idx in range(4)]
    taken = [policy.take().tolist() for policy in policies]
    assert taken == [[0, 4], [1, 5], [2], [3]]
    assert [policy.num_groups for policy in policies] == [2, 2, 1, 1]


def test_a_policy_worker_can_wait_for_all_its_groups_and_gets_them_in_order():
    channels = new_channels()
    workers = [channels.of_worker(0), channels.of_worker(1)]
    for worker, group in ((1, 3), (0, 1), (0, 1), (1, 2), (0, 0)):  # 1 twice
        if group not in workers[worker]._waiting:
            workers[worker].ask(group, row=0)
        else:
            channels.requests[0].put(group)
    assert channels.of_policy_worker(0).take(at_least=4).tolist() == [0, 1, 2, 3]


def test_requests_are_open_until_they_are_answered_or_their_worker_has_died():
    channels = new_channels(num_workers=2, groups_per_worker=2, policy_workers_per_policy=2)
    channels.of_worker(0).ask(0, row=0)
    channels.of_worker(0).ask(1, row=0)
    channels.of_worker(1).ask(3, row=0)
    policies = [channels.of_policy_worker(0), channels.of_policy_worker(1)]
    groups = policies[0].take()
    assert [channels.has_open_requests(idx) for idx in range(2)] == [True, True]
    policies[0].answer(groups, policies[0].numbers(groups))
    assert [channels.has_open_requests(idx) for idx in range(2)] == [False, True]
    channels.recover_worker(0)
    assert channels.has_open_requests(1)  # that of worker 1
    channels.recover_worker(1)
    assert not channels.has_open_requests(1)


def test_of_a_rollout_worker_that_has_died_no_policy_has_an_open_request():
    channels = new_channels(num_workers=2, groups_per_worker=1, num_policies=3)
    for idx in range(2):
        channels.of_worker(idx).ask(idx, row=0, policy_ids=[0, 1, 2])
    channels.recover_worker(0)
    is_open = channels.tables["asked"] != channels.tables["answered"]  # [P, G]
    assert is_open.tolist() == [[False, True]] * 3


def test_all_groups_ask_one_player_worker_behind_however_many_policy_workers():
    channels = new_channels(policy_workers_per_policy=3, num_policies=2, has_seats=True)
    players = 2  # the number by which seats are asked
    assert channels.player_worker_idx == 6
    for idx in range(2):
        worker = channels.of_worker(idx)
        for group in worker.groups:
            worker.ask(group, row=0, policy_ids=[players])
    for asked_again in (False, True):
        if asked_again:
            channels.recover_policy_worker(channels.player_worker_idx)
        player_worker = channels.of_policy_worker(channels.player_worker_idx)
        assert player_worker.num_groups == 4
        assert player_worker.take(at_least=4).tolist() == [0, 1, 2, 3]
    assert not any(queue.has_messages() for queue in channels.requests)
    player_worker.answer(np.arange(3), player_worker.numbers(np.arange(3)))
    assert channels.has_open_requests(channels.player_worker_idx)
    player_worker.answer(np.array([3]), player_worker.numbers(np.array([3])))
    assert not channels.has_open_requests(channels.player_worker_idx)


def test_a_reset_forgets_requests_and_answers():
    channels = new_channels()
    channels.of_worker(0).ask(0, row=0)
    channels.of_worker(1).ask(2, row=0)
    channels.inboxes[1].put(2)
    channels.reset()
    assert not any(queue.has_messages() for queue in (*channels.requests, *channels.inboxes))
    assert (channels.tables["asked"] == channels.tables["answered"]).all()


def test_a_stop_among_the_messages_is_raised_on_both_sides():
    channels = new_channels()
    for queue, group in ((channels.requests[0], 0), (channels.inboxes[1], 2)):
        queue.put(group)
        queue.stop()
    with pytest.raises(StopRequested):
        channels.of_policy_worker(0).take()
    with pytest.raises(StopRequested):
        channels.of_worker(1).wait()


def test_a_group_goes_on_when_all_policies_that_play_in_it_have_answered_and_no_other_is_asked():
    channels = new_channels(num_workers=1, groups_per_worker=2, policy_workers_per_policy=2, num_policies=3)
    worker = channels.of_worker(0)
    worker.ask(1, row=4, policy_ids=[0, 2])
    assert [channels.has_open_requests(idx) for idx in range(6)] == [False, True, False, False, False, True]
    for idx in (1, 5):
        assert worker.take([0, 1]) == []
        policy_worker = channels.of_policy_worker(idx)
        groups = policy_worker.take()
        assert groups.tolist() == [1]
        policy_worker.answer(groups, policy_worker.numbers(groups))
    assert worker.wait() == [1]
    assert worker.take([0, 1]) == [1]


def test_a_policy_gets_the_slots_of_the_actors_that_it_plays():
    channels = new_channels(num_workers=1, num_policies=2, num_actors=3)
    worker = channels.of_worker(0)
    for group, slots, policy in ((0, [5, 6, 7], [1, 0, 1]), (1, [8, 9, 10], [1, 1, 0])):
        channels.tables["slots"][group] = slots
        channels.tables["policy"][group] = policy
        worker.ask(group, row=group + 3, policy_ids=[0, 1])
    found = {}
    for policy_id in (0, 1):
        policy_worker = channels.of_policy_worker(policy_id)
        groups = policy_worker.take(at_least=2)
        slots, rows, numbers = policy_worker.rows(groups, policy_worker.numbers(groups))
        assert numbers.shape == slots.shape
        found[policy_id] = list(zip(slots.tolist(), rows.tolist(), strict=True))
    assert found == {0: [(6, 3), (10, 4)], 1: [(5, 3), (7, 3), (8, 4), (9, 4)]}


def test_of_several_policies_none_writes_what_a_rollout_worker_that_has_died_had_asked_for():
    channels = new_channels(num_workers=1, groups_per_worker=1, num_policies=2, num_actors=2)
    first, second = map(channels.of_policy_worker, range(2))

    def begin(policy):
        """A new rollout worker, whose actors are played by these policies."""
        channels.recover_worker(0)
        channels.tables["policy"][0] = policy
        channels.of_worker(0).ask(0, row=0, policy_ids=sorted(set(policy)))

    begin([0, 1])
    old_groups = first.take()
    old_numbers = first.numbers(old_groups)
    assert first.still_asked(np.array([0]), old_numbers).tolist() == [True]
    begin([1, 1])
    assert first.still_asked(np.array([0]), old_numbers).tolist() == [False]
    numbers = np.repeat(second.numbers(second.take()), 2)
    assert second.still_asked(np.arange(2), numbers).tolist() == [True, True]
    begin([0, 0])
    channels.recover_worker(0)
    first.answer(old_groups, old_numbers)
    assert not channels.has_open_requests(0)  # a late answer opens no later request again
