"""Shares of time, up to the moment of a record: what a process is at counts while it is at it."""

from contextlib import suppress
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

import sf.league.players.worker
import sf.learner.worker
import sf.policy.worker
import sf.rollout.worker
from sf.config import Config
from sf.metrics.meter import Machine, Meter
from sf.metrics.progress import Progress
from sf.ranks.place import ALONE_HERE
from sf.shared.counters import Counters
from sf.shared.queues import StopRequested
from sf.system.machine.cores import usable_cores

RECORD_EVERY_S = 10.0


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=1e6)  # a machine that has run for eleven days
    monkeypatch.setattr("time.perf_counter", lambda: now.seconds)
    return now


@pytest.fixture
def process(clock):
    return Process(clock)


class Process:
    """One that is looked at every ten seconds, while it works or waits."""

    def __init__(self, clock):
        counters = Counters.allocate(2)
        self.row = counters.row(1)
        self.meter = Meter(counters, {"rollout": [1]}, Machine())
        self.records = []  # busy, wait and slot_wait, as shares of the time since the one before
        self._clock = clock

    def spend(self, seconds):
        for _ in range(round(seconds)):
            self._clock.seconds += 1.0
            if self._clock.seconds % RECORD_EVERY_S == 0:
                self.records.append(shares(self.meter.look()))


def shares(window):
    return [round(window.share(name, [1]), 9) for name in ("busy", "wait", "slot_wait")]


def test_work_and_waits_count_up_to_each_record_while_they_are_under_way(process):
    row = process.row
    for begin, *times, seconds in [
        (row.waiting, 25),
        (row.working, 31),
        (row.waiting, "slot_wait_s", 40),
        (row.working, 1),
        (row.waiting, 2),
        (row.waiting, "slot_wait_s", 1),
    ]:
        begin(*times)
        process.spend(seconds)
    assert process.records == [
        *[[0, 1, 0]] * 2, [0.5, 0.5, 0], *[[1, 0, 0]] * 2, [0.6, 0, 0.4], *[[0, 0, 1]] * 3, [0.1, 0.2, 0.7],
    ]  # fmt: skip
    assert shares(process.meter.whole()) == [0.32, 0.27, 0.41]


def test_neither_the_start_of_a_process_nor_what_follows_its_death_counts(process):
    row = process.row
    for _ in range(2):
        row.working()  # it starts
        process.spend(10)
        row.waiting()
        process.spend(2)
        row.working()
        process.spend(5)
        row.resting()
        process.spend(3)
    assert process.records == [[0, 0, 0], [0.5, 0.2, 0]] * 2


def policy_worker(args, monkeypatch, wait, work):
    monkeypatch.setattr(sf.policy.worker, "configure", MagicMock())
    monkeypatch.setattr(sf.policy.worker, "_Policy", lambda *args: MagicMock(act=work))
    args.config = None
    args.synchronous, args.channel.take, args.channel.rows.return_value = False, wait, (np.arange(2), None, None)
    sf.policy.worker.policy_worker(MagicMock(), args)


def player_worker(args, monkeypatch, wait, work):
    monkeypatch.setattr(sf.league.players.worker, "configure", MagicMock())
    monkeypatch.setattr(sf.league.players.worker, "_Players", lambda *args: MagicMock(act=lambda groups: work() or 0))
    args.channel.look = wait
    sf.league.players.worker.player_worker(MagicMock(), args)


def rollout_worker(args, monkeypatch, wait, work, is_parked=False):
    group = MagicMock(is_parked=is_parked, advance=lambda: work() or [], num_env_steps=1, num_rows=1, num_away=0)
    group.pop_num_cut.return_value, group.pop_played.return_value = 0, []
    monkeypatch.setattr(sf.rollout.worker, "RolloutGroup", lambda *args: group)
    args.core, args.seed, args.seed_key, args.num_envs_per_group = None, 0, (), 1
    args.channel.groups, args.channel.wait, args.channel.take, args.channel.actors_per_group = [0], wait, list, 1
    sf.rollout.worker.rollout_worker(MagicMock(), args)


def rollout_worker_without_slots(*args):
    rollout_worker(*args, is_parked=True)


def learner(args, monkeypatch, wait, work):
    parts = ("configure", "SharedWeights", "PolicyWorkers", "Saver", "Orders", "iteration_seconds", "_faster_step")
    for part in (*parts, "_gradient_workers"):
        monkeypatch.setattr(sf.learner.worker, part, MagicMock())
    monkeypatch.setattr(sf.learner.worker, "_demonstrations", lambda *args: None)
    monkeypatch.setattr(sf.learner.worker, "Rollback", MagicMock(return_value=MagicMock(is_due=False)))
    state = MagicMock(is_finished=False, share_done=0.0, games=None, ranks=MagicMock(size=1, waited_s=0.0))
    state.updater.train_iteration = lambda *args: work() or 1
    state.updater.helper = None
    loader = MagicMock(next=wait, env_steps=8)
    loader.pop_lost_steps.return_value = 0
    args.config = Config()
    args.stop.is_set.return_value = False
    args.weights.device, args.place, args.policy_id = "cpu", ALONE_HERE, 0
    pace = MagicMock()
    pace.end.return_value = pace.warning.return_value = None
    for part, stand_in in (("LearnerState", state), ("make_loader", loader), ("Pace", pace)):
        monkeypatch.setattr(sf.learner.worker, part, MagicMock(return_value=stand_in))
    monkeypatch.setattr(sf.learner.worker, "join", MagicMock(return_value=state.ranks))
    sf.learner.worker.learner(MagicMock(), args)


@pytest.mark.parametrize(
    ("body", "is_for_slots"),
    [
        (policy_worker, False),
        (player_worker, False),
        (rollout_worker, False),
        (rollout_worker_without_slots, True),
        (learner, False),
    ],
)
def test_each_process_counts_all_of_its_time_in_the_records_that_it_is_of(body, is_for_slots, process, monkeypatch):
    waits = iter([35, 4])

    def wait(*args):
        seconds = next(waits, None)
        if seconds is None:
            raise StopRequested
        process.spend(seconds)
        return [0]

    with suppress(StopRequested):
        body(MagicMock(counters=process.row), monkeypatch, wait, lambda *args: process.spend(23))
    busy_and_wait = [(0, 1), (0, 1), (0, 1), (0.5, 0.5), (1, 0), (0.8, 0.2), (0.8, 0.2), (1, 0)]
    assert process.records == [[busy, 0, wait] if is_for_slots else [busy, wait, 0] for busy, wait in busy_and_wait]
    assert process.row.get("calls") == 2


def test_a_load_is_of_the_time_since_the_first_training_and_of_the_busiest_learner(clock):
    counters = Counters.allocate(5)
    roles = {"rollout": [0], "policy": [1], "learner": [2, 3], "player": [4]}
    progress = Progress(counters, roles, 4, 10, num_policies=2, machine=Machine(usable_cores()))
    for row in range(5):
        counters.row(row).waiting()
    counters.row(0).working()  # while processes start
    clock.seconds += 50.0
    counters.row(0).waiting()
    progress.record()
    assert progress.load() is None
    progress.add_training(0, 64, {})
    counters.row(1).add(steps=60, calls=4)
    counters.row(2).add(steps=100, calls=1)
    counters.row(3).working()
    clock.seconds += 5.0
    counters.row(4).working()
    clock.seconds += 15.0
    record, load = progress.record(), progress.load()
    assert (load.rollout_busy, load.learner_busy, load.learner_wait, load.player_busy) == (0.0, 1.0, 0.0, 0.75)
    assert not load.has_iteration  # of that learner
    assert load.actions_per_batch == 15.0
    assert 0.0 <= load.cores_in_use <= 1.0
    assert [record[f"policy_0{idx}/learner/busy_share"] for idx in (0, 1)] == [0.0, 1.0]
    assert progress.outlook().frames_per_second == 20.0
    counters.row(3).add(calls=1)
    progress.record()
    assert progress.load().has_iteration
