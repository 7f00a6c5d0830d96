"""Who counts as hanging: children that are only claimed to run, and a clock that is set by hand."""

import re
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from allocated import allocate

from sf.config import Config
from sf.run.children import starter, supervisor, watchdog
from sf.run.children.supervisor import Supervisor
from sf.run.learner_orders import LearnerOrders
from sf.shared.queues import LockedQueueError, PipeQueue
from sf.shared.slots import FILLING, FREE, FULL
from sf.system.processes.child import Child
from sf.system.processes.reports import (
    Episodes,
    Failed,
    Killed,
    LearnerFinished,
    Replaced,
    Reports,
    SavedFor,
    Saving,
    Unreported,
)

TIMEOUT_S = 10.0


class Process:
    """What the parent holds of a process."""

    exitcode = -9

    def __init__(self):
        self.pid = id(self)
        self._pipe = Pipe(duplex=False)  # its reader is ready when the process has ended
        self.sentinel = self._pipe[0].fileno()
        self.is_killed = False

    def kill(self):
        self.is_killed = True
        self._pipe[1].close()

    def join(self):
        assert self.is_killed


class Run:
    """A supervisor with its children; `go_on` lets time pass."""

    def __init__(self, monkeypatch, tmp_path, **flags):
        self.now = 1000.0
        self.killed = []
        self.writers = {}
        self.children = {}
        self.args = {}
        self._wakeup, self._waker = Pipe(duplex=False)
        config = Config().replace(
            **{"env": "toy_identity", "num_workers": 2, "policy_workers_per_policy": 2, "device": "cpu", **flags},
            worker_timeout_s=TIMEOUT_S,
        )
        self.memory = allocate(config, tmp_path)
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(supervisor, "time", clock)
        monkeypatch.setattr(watchdog, "time", clock)
        monkeypatch.setattr(supervisor, "start_fork_servers", lambda: None)
        monkeypatch.setattr(starter, "start_child", self._start)
        self.supervisor = Supervisor(self.memory, LearnerOrders(progress=None))
        self.supervisor.start(lambda: False)

    def _start(self, server, role, idx, body, args):
        reader, writer = Pipe(duplex=False)
        child = Child(role, idx, Process(), reader, is_ready=True, beat_at=self.now)
        self.children[child.name] = child
        self.args[child.name] = args
        self.writers[child.name] = writer
        return child

    def claim_locked(self, by_pid):
        object.__setattr__(self.memory, "queues", SimpleNamespace(may_be_locked_by=by_pid))

    def row(self, name):
        role, idx = name.split("-")
        return self.memory.counter_row(role, int(idx))

    def report(self, name, report):
        Reports(self.writers[name]).send(report)

    def end(self, name):
        """The process is gone, and its end of the pipe with it."""
        self.writers[name].close()
        self.children[name].process.kill()

    def receive(self):
        return self.supervisor.receive(self._wakeup, timeout_s=0.0)

    def go_on(self, seconds, moving=()):
        """A second at a time; those that are `moving` do a piece of work in each. Returns who was killed."""
        before = dict(self.children)
        for _ in range(int(seconds)):
            self.now += 1.0
            for name in moving:
                self.row(name).working()
                self.row(name).waiting()
            self.supervisor.receive(self._wakeup, timeout_s=0.0)
        return sorted(name for name, child in before.items() if child.process.is_killed)


@pytest.fixture
def run(monkeypatch, tmp_path):
    return Run(monkeypatch, tmp_path)


def others(run, *names):
    return [name for name in run.children if name not in names]


def drain(run):
    """Nobody has work: what the parent has put into the queues is taken, and all slots are full."""
    for queue in run.memory.pool.inboxes:
        queue.drain()
    run.memory.pool.arrays["state"][:] = FULL


def test_a_child_that_waits_for_nothing_does_not_hang(run):
    drain(run)
    assert run.go_on(5 * TIMEOUT_S, moving=["rollout-0"]) == []


def test_a_child_that_stays_at_one_piece_of_work_hangs(run):
    drain(run)
    run.row("rollout-1").working()
    assert run.go_on(TIMEOUT_S, moving=others(run, "rollout-1")) == []
    assert run.go_on(2, moving=others(run, "rollout-1")) == ["rollout-1"]


@pytest.mark.parametrize("name", ["rollout-1", "learner-0"])
def test_a_child_that_does_not_take_its_messages_hangs(run, name):
    drain(run)
    queue = run.memory.pool.inboxes[1] if name == "rollout-1" else run.memory.pool.full[0]
    queue.put(0)
    assert run.go_on(TIMEOUT_S + 2, moving=others(run, name)) == [name]


def test_a_policy_worker_that_has_taken_a_request_and_no_more_hangs(run):
    drain(run)
    run.memory.channels.tables["asked"][0, 3] += 1  # the message is taken: the queue is empty
    assert run.go_on(TIMEOUT_S + 2, moving=others(run, "policy-1")) == ["policy-1"]


GROUP = 3  # of rollout-1


def ask(run):
    """The rollout worker of the group takes slots for it, and asks for its actions."""
    channel = run.memory.channels.of_worker(1)
    channel.ask(GROUP, 0)
    return channel


@pytest.mark.parametrize("has_answer", [True, False])
def test_a_rollout_worker_that_has_taken_an_answer_and_no_more_hangs(run, has_answer):
    """It was stopped between the message and saying so. Others go on, so that not all stands still."""
    drain(run)
    first = GROUP * run.memory.pool.slots_per_group
    run.memory.pool.arrays["state"][first] = FILLING
    ask(run)
    if has_answer:
        answered = run.memory.channels.tables["answered"]
        answered[:] = run.memory.channels.tables["asked"]  # the message is taken: the queue is empty
        for queue in run.memory.channels.requests:
            queue.drain()
    rollout_workers = ["rollout-1"] if has_answer else []
    assert run.go_on(TIMEOUT_S, moving=others(run, "rollout-1")) == []
    assert run.go_on(2, moving=others(run, "rollout-1")) == rollout_workers


def test_a_rollout_worker_that_has_heard_of_free_slots_and_no_more_hangs(run):
    drain(run)
    pool = run.memory.pool
    first = GROUP * pool.slots_per_group
    pool.arrays["state"][first : first + pool.actors_per_group - 1] = FREE  # too few
    assert run.go_on(TIMEOUT_S + 2, moving=others(run, "rollout-1")) == []
    pool.arrays["state"][first : first + pool.actors_per_group] = FREE
    assert run.go_on(TIMEOUT_S + 2, moving=others(run, "rollout-1")) == ["rollout-1"]


def test_where_all_wait_and_nothing_moves_all_hang(run):
    drain(run)
    assert run.go_on(TIMEOUT_S, moving=[]) == []
    assert run.go_on(2, moving=[]) == sorted(run.children)


def test_nobody_hangs_where_the_learner_waits_for_other_ranks(run):
    drain(run)
    run.memory.pool.full[0].put(0)
    with run.row("learner-0").held_up():
        assert run.go_on(5 * TIMEOUT_S, moving=[]) == []
    assert run.go_on(TIMEOUT_S + 2, moving=others(run, "learner-0")) == ["learner-0"]


def test_a_run_that_is_cut_off_from_another_rank_ends_at_once(run):
    run.supervisor.cut_off("rank 1 on node-7 has not been heard of for 30 s")
    assert str(run.supervisor.failure) == (
        "rank 1 on node-7 has not been heard of for 30 s: all ranks end, and torchrun may start them again"
    )


def test_where_one_hangs_those_that_wait_for_it_do_not(run):
    drain(run)
    run.row("rollout-0").working()
    assert run.go_on(TIMEOUT_S + 2, moving=[]) == ["rollout-0"]


def test_time_in_which_the_parent_did_not_run_counts_for_nobody(run):
    run.row("rollout-0").working()
    run.go_on(1)
    run.now += 100 * TIMEOUT_S
    assert run.go_on(1) == []


def test_a_child_that_starts_may_take_longer(run):
    drain(run)
    run.children["learner-0"].is_ready = False
    assert run.go_on(watchdog.START_WITHIN_S, moving=others(run, "learner-0", "policy-0")) == []
    assert run.go_on(2, moving=others(run, "learner-0", "policy-0")) == ["learner-0"]


def test_what_a_learner_had_in_its_hands_when_it_died_is_taken_and_lost(run):
    pool, rollout = run.memory.pool, run.memory.plan.config.sampler.rollout
    pool.arrays["env_steps"][:] = rollout
    num_full = 0
    for idx in range(2):
        worker = pool.of_worker()
        first = idx * pool.groups_per_worker
        slots = [
            slot for g in range(first, first + pool.groups_per_worker) for slot in worker.take(g, pool.slots_per_group)
        ]
        worker.hand_over(slots)
        num_full += len(slots)
    learner = pool.of_learner()
    learner.give_back(learner.take(at_most=2))  # into a batch that is trained on
    run.row("learner-0").add(steps=2 * rollout)
    learner.give_back(learner.take(at_most=1))  # into the next one
    learner.take(at_most=1)  # is being copied
    run.children["learner-0"].process.kill()
    run.go_on(1)
    assert run.args["learner-0"].predecessor_env_steps == run.row("learner-0").get("steps") == 4 * rollout
    assert np.count_nonzero(pool.arrays["state"] == FULL) == num_full - 4  # the new one trains on them
    run.children["learner-0"].process.kill()
    run.go_on(1)
    assert run.args["learner-0"].predecessor_env_steps == 4 * rollout  # nothing is lost twice


def test_a_policy_worker_that_waits_for_a_learner_that_starts_does_not_hang(run):
    drain(run)
    run.children["learner-0"].is_ready = run.children["policy-0"].is_ready = False
    assert "policy-0" not in run.go_on(watchdog.START_WITHIN_S + 1)


EPISODE = [1.0, 8, 8, {}, 0, 0, 0.0]


def lost(events):
    return {type(report): report.lost_episodes for _, report in events if isinstance(report, Replaced | Unreported)}


def test_episodes_that_a_dead_worker_had_finished_and_not_reported_are_lost(run):
    running = run.memory.plan.config.sampler.num_envs_per_worker
    run.row("rollout-1").add(episodes=9)
    run.report("rollout-1", Episodes([EPISODE] * 4, 2, []))
    run.end("rollout-1")
    assert lost(run.receive()) == {Unreported: 3, Replaced: running}
    run.row("rollout-1").add(episodes=5)
    run.report("rollout-1", Episodes([EPISODE] * 5, 0, []))
    run.end("rollout-1")
    assert lost(run.receive()) == {Replaced: running}


def test_agents_that_have_left_their_match_lose_no_episode_with_their_worker(run):
    running = run.memory.plan.config.sampler.num_envs_per_worker
    run.row("rollout-1").add(away=1)
    run.end("rollout-1")
    assert lost(run.receive()) == {Replaced: running - 1}


def test_the_time_of_a_process_stops_where_it_has_ended(run, monkeypatch):
    monkeypatch.setattr("time.perf_counter", lambda: run.now)
    for name in ("rollout-0", "rollout-1"):
        run.row(name).waiting()
        run.row(name).working()
    run.end("rollout-1")
    run.receive()
    run.now += 7.0
    _, counts = run.memory.counters.snapshot()
    assert counts["busy_s"][run.memory.counter_rows["rollout"]].tolist() == [7.0, 0.0]


def test_the_last_reports_of_a_worker_that_is_killed_with_others_are_heard(run):
    run.row("rollout-0").add(episodes=3)
    run.report("rollout-0", Episodes([EPISODE] * 2, 0, []))
    run.writers["rollout-0"].close()
    events = run.supervisor._living.kill(run.children["rollout-0"])
    assert [type(report) for _, report in events] == [Episodes, Unreported]
    assert lost(events) == {Unreported: 1}


@pytest.mark.parametrize(("while_saving", "has_room"), [(True, True), (True, False), (False, True)])
def test_for_a_learner_whose_last_save_failed_the_parent_tries_it_but_not_after_divergence(
    run, monkeypatch, while_saving, has_room
):
    def save_for_learner(memory, policy_id):
        if not has_room:
            raise OSError("No space left on device")
        return Path("checkpoint_000001_000000000640.safetensors")

    monkeypatch.setattr(supervisor, "save_for_learner", save_for_learner)
    if while_saving:
        run.report("learner-0", Saving())
    run.report("learner-0", Failed("make room", is_usage_error=False, is_final=True, traceback=None))
    run.end("learner-0")
    learner = run.children["learner-0"]
    run.receive()
    assert run.children["learner-0"] is learner  # it is not replaced
    for name in others(run, "learner-0"):
        run.end(name)
    signals = SimpleNamespace(first=None, is_urgent=False, wakeup=run._wakeup, clear_wakeup=lambda: None)
    saved = [report.env_steps for _, report in run.supervisor.stop(signals) if isinstance(report, SavedFor)]
    assert saved == ([640] if while_saving and has_room else [])
    assert str(run.supervisor.failure) == "learner-0: make room"


def test_a_learner_that_has_saved_and_ended_is_not_missed_while_another_policy_still_trains(monkeypatch, tmp_path):
    run = Run(monkeypatch, tmp_path, num_policies=2)
    saved = run.children["learner-0"]
    run.report("learner-0", LearnerFinished(640))
    run.end("learner-0")
    run.receive()
    assert run.supervisor.failure is None
    assert run.children["learner-0"] is saved  # no other one was started
    assert not run.supervisor.is_finished
    run.report("learner-1", LearnerFinished(640))
    run.receive()
    assert run.supervisor.is_finished


def test_at_the_end_each_child_is_killed_when_its_own_time_is_over(run):
    for writer in run.writers.values():
        writer.close()
    killed = []
    signals = SimpleNamespace(first=None, is_urgent=False, wakeup=run._wakeup, clear_wakeup=lambda: None)

    def receive(_wakeup, timeout_s):
        run.now += timeout_s
        if {child.role for child in run.supervisor._living} == {"learner"}:
            raise KeyboardInterrupt  # it waits for the learner alone
        return []

    run.supervisor.receive = receive
    began = run.now
    with suppress(KeyboardInterrupt):
        for child, report in run.supervisor.stop(signals):
            killed.append((child.name, type(report), run.now - began))
    assert {name for name, kind, _ in killed if kind is Killed} == set(run.children) - {"learner-0"}
    assert all(after <= 6.0 for _, _, after in killed)


@pytest.mark.parametrize(("signum", "is_awaited", "waited_s"), [(None, True, 60.0), (None, False, 0.0), (2, True, 0.0)])
def test_at_the_end_the_evaluator_has_a_minute_for_its_video_unless_a_signal_ends_the_run(
    monkeypatch, tmp_path, signum, is_awaited, waited_s
):
    run = Run(monkeypatch, tmp_path, video_every_env_steps=100)
    for writer in run.writers.values():
        writer.close()
    signals = SimpleNamespace(first=signum, is_urgent=False, wakeup=run._wakeup, clear_wakeup=lambda: None)
    began, ended = run.now, {}

    def receive(_wakeup, timeout_s):
        run.now += timeout_s
        return []

    def kill(child):
        ended[child.role] = run.now - began
        run.supervisor._living._children.remove(child)
        return []

    run.supervisor.receive, run.supervisor._living.kill = receive, kill
    said = [child.role for child, record in run.supervisor.stop(signals, lambda: is_awaited)]
    assert ended["evaluator"] == pytest.approx(waited_s, abs=1.0)
    assert "evaluator" not in said  # nobody asked it to stop


def test_a_child_that_dies_inside_of_a_queue_which_may_be_locked_for_ever_ends_the_run(run):
    run.claim_locked(lambda pid: pid == run.children["rollout-0"].process.pid)
    run.children["rollout-0"].process.kill()
    run.supervisor.receive(run._wakeup, timeout_s=0.0)
    assert re.search(r"rollout-0 died inside of a queue.*--queues pipes", str(run.supervisor.failure))


def test_one_that_is_replaced_with_another_and_dies_inside_of_a_queue_ends_the_run_as_well(monkeypatch, tmp_path):
    run = Run(monkeypatch, tmp_path, async_rl=False, policy_workers_per_policy=1, batch_size=1024)
    victim = run.children["policy-0"].process
    run.claim_locked(lambda pid: pid == victim.pid)
    run.children["rollout-0"].process.kill()
    run.supervisor.receive(run._wakeup, timeout_s=0.0)
    assert victim.is_killed
    assert re.search(r"policy-0 died inside of a queue.*--queues pipes", str(run.supervisor.failure))


def test_a_queue_that_the_parent_finds_locked_ends_the_run(run, monkeypatch):
    def refuse(*_):
        raise LockedQueueError("a queue is locked")

    monkeypatch.setattr(PipeQueue, "drain", refuse)
    run.children["rollout-0"].process.kill()
    run.supervisor.receive(run._wakeup, timeout_s=0.0)
    assert re.search(r"a queue is locked.*--queues pipes", str(run.supervisor.failure))


@pytest.mark.long
def test_a_process_that_hangs_in_every_life_ends_the_run(run):
    drain(run)
    for _ in range(6):
        assert run.supervisor.failure is None
        run.row("rollout-1").working()
        assert run.go_on(TIMEOUT_S + 2, moving=others(run, "rollout-1")) == ["rollout-1"]
        drain(run)
    run.end("rollout-1")
    run.receive()
    assert "rollout-1 has died 6 times within" in str(run.supervisor.failure)
