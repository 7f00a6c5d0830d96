"""Loaders with a sampler in this process: they never wait for each other, and every trajectory is in one column."""

import dataclasses
import queue
import threading
import time
from concurrent.futures import Future
from functools import cache

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from waiting import in_time

from sf.envs import EnvSpec
from sf.learner.batches.loaders import AsyncLoader, BatchBuffer, SlotCopier, SyncLoader
from sf.shared.queues import PipeQueue, StopRequested
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.slots import FREE, SlotPool
from sf.shared.weights import SharedWeights, SharedWeightsSpec
from sf.system.processes.stopping import StopFlag

PATIENCE_S = 30.0  # after which something is taken to hang
T = 2
SPEC = EnvSpec(
    obs_space=gym.spaces.Dict({"obs": gym.spaces.Box(-1, 1, (2,), np.float32)}),
    action_space=gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(-1, 1, (1,)))),
)
STEP_FIELDS = (
    "discrete",
    "continuous",
    "log_prob",
    "value",
    "policy_version",
    "reward",
)
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # every attempt would hang once more


@cache
def make_pool(num_workers, groups_per_worker, actors_per_group, extra):
    return SlotPool.allocate(
        SPEC,
        T,
        inboxes=tuple(PipeQueue(1000) for _ in range(num_workers)),
        groups_per_worker=groups_per_worker,
        slots_per_group=actors_per_group + extra,
        actors_per_group=actors_per_group,
    )


class System:
    """The slots of some workers, their sampler, and what a loader needs."""

    def __init__(self, num_workers=2, groups_per_worker=1, actors_per_group=2, extra=0):
        self.pool = make_pool(num_workers, groups_per_worker, actors_per_group, extra)
        self.pool.reset()
        self.num_actors = num_workers * groups_per_worker * actors_per_group
        self.weights = SharedWeights.create(SharedWeightsSpec.allocate("cpu", 1))
        states = RecurrentStates(3, self.num_actors, self.pool.num_slots)
        self.copier = SlotCopier(self.pool.of_learner(), states, SPEC)
        self.sampler = Sampler(self.pool, states)

    def buffer(self, num_trajectories):
        return BatchBuffer(self.pool.arrays, num_trajectories, 3, "cpu")

    def async_loader(self, num_trajectories, slots=None, copier=None):
        buffers = (self.buffer(num_trajectories), self.buffer(num_trajectories))
        return AsyncLoader(slots or self.pool.of_learner(), copier or self.copier, buffers, "cpu", StopFlag())

    def sync_loader(self, num_trajectories):
        buffer = self.buffer(num_trajectories)
        return SyncLoader(self.pool.of_learner(), self.copier, buffer, self.weights, self.num_actors)


class Sampler:
    """Fills slots as rollout workers do: each group all its slots of a rollout at once.

    Trajectory k has k in every field, and the number of the row beside it.
    """

    def __init__(self, pool, states):
        self._pool = pool
        self._states = states
        self._workers = [pool.of_worker() for idx in range(len(pool.inboxes))]
        self.num_filled = 0

    def fill_what_is_free(self):
        """In the order of the groups. Raises StopRequested."""
        for inbox in self._pool.inboxes:
            if inbox.has_messages():
                inbox.get_many()
        state = self._pool.arrays["state"].copy()  # slots that come back meanwhile wait for the next time
        num_free = (state == FREE).reshape(-1, self._pool.slots_per_group).sum(axis=1)
        num_actors = self._pool.actors_per_group
        for group_idx, num_rollouts in enumerate((num_free // num_actors).tolist()):
            worker = self._workers[group_idx // self._pool.groups_per_worker]
            for _ in range(num_rollouts):
                slots = worker.take(group_idx, num_actors)
                for place, slot in enumerate(slots):
                    self._write(slot, group_idx * num_actors + place)
                worker.hand_over(slots)

    def run(self):
        """Until an inbox is stopped."""
        try:
            while True:
                self.fill_what_is_free()
                time.sleep(1e-4)
        except StopRequested:
            return

    def _write(self, slot, actor):
        rows, number = self._pool.arrays, self.num_filled
        self.num_filled += 1
        for name in STEP_FIELDS:
            rows[name][slot] = stamp(number, rows[name][slot])
        rows["obs/obs"][slot] = stamp(number, rows["obs/obs"][slot])
        rows["first"][slot] = [(number + t) % 2 for t in range(T + 1)]
        rows["terminated"][slot] = [(number + t) % 3 == 0 for t in range(T)]
        rows["valid"][slot] = [(number + t) % 3 == 1 for t in range(T)]
        rows["actor"][slot] = actor
        rows["env_steps"][slot] = number % 5
        self._states.of_slots[slot] = number


def stamp(number, like):
    """[T or T+1, ...] with the number of the trajectory and the row."""
    return (10 * number + np.arange(len(like)).reshape(-1, *(1,) * (like.ndim - 1))) + np.zeros_like(like)


def numbers_in(batch):
    """The numbers of the trajectories in the columns, all of whose fields are theirs."""
    numbers = batch.state[:, 0].int().tolist()
    for column, number in enumerate(numbers):
        assert (batch.state[column] == number).all()
        for values in (batch.obs["obs"][:, column], *(getattr(batch, name)[:, column] for name in STEP_FIELDS)):
            assert np.array_equal(values.numpy(), stamp(number, values.numpy()))
        assert batch.first[:, column].tolist() == [(number + t) % 2 == 1 for t in range(T + 1)]
        assert batch.terminated[:, column].tolist() == [(number + t) % 3 == 0 for t in range(T)]
        assert batch.valid[:, column].tolist() == [(number + t) % 3 == 1 for t in range(T)]
    return numbers


def train(system, loader, num_batches):
    """Numbers of the trajectories of batch after batch, with the sampler running beside; then stop everything."""
    sampler = threading.Thread(target=system.sampler.run, daemon=True)
    sampler.start()
    numbers = []
    for _ in range(num_batches):
        batch = in_time(loader.next, PATIENCE_S)
        numbers.append(numbers_in(batch))
        assert loader.env_steps == sum(number % 5 for number in numbers[-1])
        loader.release()
    system.pool.inboxes[0].stop()
    sampler.join()
    stop(system, loader)
    return numbers


def stop(system, loader):
    system.pool.full[0].stop()
    while in_time(loader.next, PATIENCE_S) is not None:
        loader.release()


@given(
    num_workers=st.integers(1, 3),
    groups_per_worker=st.integers(1, 2),
    actors_per_group=st.integers(1, 3),
    extra=st.integers(0, 4),
    num_trajectories=st.integers(1, 40),
)
@settings(max_examples=40, deadline=None, phases=WITHOUT_SHRINKING)
def test_batches_of_any_size_are_filled_whatever_the_groups_and_hold_every_trajectory_once(
    num_workers, groups_per_worker, actors_per_group, extra, num_trajectories
):
    system = System(num_workers, groups_per_worker, actors_per_group, extra)
    numbers = train(system, system.async_loader(num_trajectories), num_batches=4)
    assert all(len(columns) == num_trajectories for columns in numbers)
    flat = [number for columns in numbers for number in columns]
    assert len(set(flat)) == len(flat)
    # In the order in which they were filled, so none is missing.
    assert flat == list(range(len(flat)))


@given(
    num_workers=st.integers(1, 3),
    groups_per_worker=st.integers(1, 2),
    actors_per_group=st.integers(1, 3),
    data=st.data(),
)
@settings(max_examples=25, deadline=None, phases=WITHOUT_SHRINKING)
def test_synchronous_batches_are_cut_from_whole_rounds_in_the_order_of_the_actors(
    num_workers, groups_per_worker, actors_per_group, data
):
    system = System(num_workers, groups_per_worker, actors_per_group)
    one_round = system.num_actors
    parts = [size for size in range(1, one_round + 1) if one_round % size == 0]
    num_trajectories = data.draw(st.sampled_from([*parts, 2 * one_round, 3 * one_round]))
    num_batches = max(4, 2 * one_round // num_trajectories)
    numbers = train(system, system.sync_loader(num_trajectories), num_batches)
    flat = [number for columns in numbers for number in columns]
    assert flat == list(range(len(flat)))  # the sampler fills in the order of the actors, too


class WatchedSlots:
    """The slots of the learner; each thing that it does with them is told afterwards."""

    def __init__(self, slots):
        self._slots = slots
        self.arrays = slots.arrays
        self.events = queue.SimpleQueue()

    def take(self, at_most):
        taken = self._slots.take(at_most)
        self.events.put(("taken", taken))
        return taken

    def __getattr__(self, name):
        return getattr(self._slots, name)

    def give_back(self, slots):
        slots = list(slots)
        self._slots.give_back(slots)
        self.events.put(("given back", slots))


@pytest.mark.parametrize("extra", [0, 3])
@pytest.mark.parametrize("num_trajectories", [1, 2, 3, 7, 8, 12])
def test_the_last_slots_of_a_batch_stay_with_the_loader_until_the_batch_is_wanted(extra, num_trajectories):
    system = System(num_workers=2, groups_per_worker=2, actors_per_group=2, extra=extra)
    watched = WatchedSlots(system.pool.of_learner())
    loader = system.async_loader(num_trajectories, watched)
    first = Future()
    threading.Thread(target=lambda: first.set_result(loader.next()), daemon=True).start()
    num_taken, held = 0, set()
    while num_taken < 2 * num_trajectories:  # the batch that is trained on, and the next one
        system.sampler.fill_what_is_free()
        event, slots = watched.events.get(timeout=PATIENCE_S)
        if event == "taken":
            held |= set(slots)
            num_taken += len(slots)
        else:
            held -= set(slots)
    system.sampler.fill_what_is_free()
    assert held
    assert system.sampler.num_filled - num_taken <= system.pool.num_slots - len(held)

    first.result(PATIENCE_S)
    loader.release()
    in_time(loader.next, PATIENCE_S)
    event, slots = watched.events.get(timeout=PATIENCE_S)
    assert event == "given back"
    assert set(slots) == held
    loader.release()
    stop(system, loader)


def test_beside_players_slots_are_held_and_go_back_once_a_worker_dies_that_had_begun_others():
    make_pool.cache_clear()  # no other test has its policies
    system, player = System(num_workers=2, actors_per_group=2), 1
    make_pool.cache_clear()
    system.pool = dataclasses.replace(system.pool, has_seats=True)
    system.pool.arrays["policy"][:] = [0, player, 0, player]
    workers = [system.pool.of_worker() for idx in range(2)]
    begun = [worker.take(idx, 2) for idx, worker in enumerate(workers)]
    watched = WatchedSlots(system.pool.of_learner())
    loader = system.async_loader(2, watched)
    workers[0].hand_over(begun[0])
    assert watched.events.get(timeout=PATIENCE_S) == ("taken", [0])
    with pytest.raises(queue.Empty):
        watched.events.get(timeout=0.1)
    system.pool.recover_worker(1)
    assert watched.events.get(timeout=PATIENCE_S) == ("taken", [])
    assert watched.events.get(timeout=PATIENCE_S) == ("given back", [0])
    stop(system, loader)


def test_the_synchronous_sampler_stands_still_until_the_last_batch_of_its_round_is_trained_on():
    system = System(num_workers=2, actors_per_group=2)
    loader = system.sync_loader(num_trajectories=2)
    system.sampler.fill_what_is_free()
    for num_filled in (4, 8):
        in_time(loader.next, PATIENCE_S)
        loader.release()
        in_time(loader.next, PATIENCE_S)
        system.sampler.fill_what_is_free()
        assert system.sampler.num_filled == num_filled
        loader.release()
        system.sampler.fill_what_is_free()
        assert system.sampler.num_filled == num_filled + 4


def test_the_synchronous_sampler_goes_on_with_the_latest_weights(monkeypatch):
    """On a GPU they are named only when they are written: before that it must not collect."""
    system = System(num_workers=2, actors_per_group=1)
    loader = system.sync_loader(num_trajectories=2)
    system.sampler.fill_what_is_free()
    loader.next()
    num_filled = system.sampler.num_filled

    def flush():
        system.sampler.fill_what_is_free()
        assert system.sampler.num_filled == num_filled

    monkeypatch.setattr(system.weights, "flush", flush)
    loader.release()
    monkeypatch.undo()
    system.sampler.fill_what_is_free()
    assert system.sampler.num_filled == 2 * num_filled


def test_a_synchronous_batch_of_several_rounds_lets_the_sampler_go_on_before_it_is_whole():
    system = System(num_workers=2, actors_per_group=2)
    numbers = train(system, system.sync_loader(num_trajectories=12), num_batches=2)
    assert numbers == [list(range(12)), list(range(12, 24))]


class FailingCopier:
    def copy(self, slots, batch, first_column):
        raise MemoryError("no pages left")

    def note_last_use(self):
        pass


def test_what_goes_wrong_in_the_thread_of_the_loader_is_raised_where_the_batch_is_wanted():
    system = System()
    loader = system.async_loader(num_trajectories=2, copier=FailingCopier())
    system.sampler.fill_what_is_free()
    with pytest.raises(MemoryError, match="no pages left"):
        in_time(loader.next, PATIENCE_S)


@pytest.mark.parametrize("make_loader", [System.async_loader, System.sync_loader])
def test_a_stop_in_the_middle_of_a_batch_ends_the_batches(make_loader):
    system = System(num_workers=2, actors_per_group=2)
    loader = make_loader(system, num_trajectories=8)
    system.sampler.fill_what_is_free()
    system.pool.full[0].stop()
    assert in_time(loader.next, PATIENCE_S) is None
