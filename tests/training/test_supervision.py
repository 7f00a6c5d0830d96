"""Processes of real runs are killed, stopped and made to fail: what is replaced, and what ends the run."""

import json
import re
import sys
from contextlib import contextmanager
from random import Random

import pytest
import warm
from faults import processes
from faults.catalog import FAULTS
from faults.session import Session
from faults.tasks import flags
from leftovers import in_shared_memory, left_in_shared_memory

from sf.storage import checkpoint

FAULT = {fault.name: fault for fault in FAULTS}


@contextmanager
def runs(tmp_path_factory):
    """Gives a function that starts a run which trains, and sees to it that nothing of them is left."""
    shared_memory_before = in_shared_memory()
    started = []

    def start(task):
        train_dir = tmp_path_factory.mktemp(task)
        with warm.everywhere():
            started.append(Session(flags(task, train_dir, worker_timeout_s=2), train_dir / "log"))
        return started[-1]

    yield start
    pids = set().union(*(processes.alive_below(session.pid) for session in started))
    for session in started:
        session.kill()
    assert processes.wait_until_gone(pids, timeout_s=30.0) == set()
    assert left_in_shared_memory(shared_memory_before) == set()


@pytest.fixture
def start(tmp_path_factory):
    with runs(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run for many faults: that it goes on after each is the point."""
    with runs(tmp_path_factory) as start:
        yield start("toy")


def inflict(name, session):
    """The fault; then every slot goes round, the learner trains, no counter falls, each process is there once."""
    FAULT[name].do(session, Random(0))
    session.wait_for_progress()


@pytest.mark.long
def test_in_synchronous_mode_one_death_replaces_all_but_that_of_a_gradient_worker_nobody(start):
    run = start("toy_sync")
    before = {run.wait_for_pid(name) for name in run.names()}
    inflict("gradient worker killed", run)
    run.wait_until(lambda: "a gradient worker died" in run.output(), "it is said")
    assert before == {run.wait_for_pid(name) for name in run.names()}
    inflict("gradient worker stopped", run)
    assert len(processes.gradient_workers(run.pid)) == 1
    before = {run.wait_for_pid(name) for name in run.names()}
    inflict("rollout worker killed", run)
    assert before.isdisjoint(run.wait_for_pid(name) for name in run.names())


@pytest.mark.long
def test_ctrl_c_while_a_process_is_replaced_saves_and_leaves_nothing_behind(start):
    run = start("toy")
    before = processes.alive_below(run.pid)
    FAULT["SIGINT while a child is replaced"].do(run, Random(0))
    assert run.exit_status == 130
    assert processes.wait_until_gone(before, timeout_s=30.0) == set()
    assert "learner-0: saved" in run.output()


@pytest.mark.long
def test_a_process_that_dies_again_and_again_ends_the_run(tmp_path):
    env_kwargs = json.dumps({"faults": ["kill"], "probability": 0.05})
    done = warm.run(
        [sys.executable, "-m", "sf", *flags("toy", tmp_path, env_kwargs=env_kwargs, max_restarts=2)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert re.search(r"rollout-\d has died 3 times within 300 s \(--max_restarts, --restart_window_s\)", done.stderr)
    assert "died of SIGKILL" in done.stderr


@pytest.mark.parametrize(
    "fault",
    [
        "rollout worker killed",
        "policy worker killed",
        "learner stopped",
        "fork server of the networks killed",
        "process killed, and again as it starts",
        *(
            pytest.param(fault, marks=pytest.mark.long)
            for fault in (
                "rollout worker stopped",
                "policy worker stopped",
                "fork server of the simulators killed",
                "fork server stopped, and a rollout worker killed",
            )
        ),
    ],
)
def test_processes_that_die_or_hang_are_replaced_and_training_goes_on(run, fault):
    inflict(fault, run)


@pytest.fixture(scope="module")
def league(tmp_path_factory):
    with runs(tmp_path_factory) as start:
        yield start("league")


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", ["player worker killed", "player worker stopped", "rollout worker killed", "policy worker killed"]
)
def test_a_run_that_meets_its_past_goes_on_after_each_death(league, fault):
    inflict(fault, league)
    record = league.run_dir.path / "league.jsonl"
    before = record.read_bytes().count(b"match")
    league.wait_until(lambda: record.read_bytes().count(b"match") > before + 100, "matches against the past go on")


def test_a_new_learner_goes_on_with_weights_and_moments_and_says_what_is_lost(run):
    num_before = run.output().count("continues; training")
    inflict("learner killed", run)
    run.wait_until(lambda: run.output().count("continues; training") > num_before, "it is said")
    run.wait_for_record()
    lost = re.findall(r"learner-0: continues; training on the last ([\d,]+) frames is lost", run.output())
    num_lost = sum(int(frames.replace(",", "")) for frames in lost)
    assert run.metric("lost_frames") == num_lost
    before = set(run.checkpoints())
    run.wait_until(lambda: set(run.checkpoints()) - before, "it saves")
    saved = checkpoint.load(run.checkpoints()[-1])
    (num_updates,) = {int(value) for name, value in saved.tensors.items() if name.endswith("/step")}
    # Adam counts the updates that the weights have seen, the version all; each new learner skips a number or two. What
    # is lost is the data of those that they have not seen, and what a learner that died had taken for the next ones.
    not_seen = saved.state["updater"]["version"] - 1 - num_updates
    learner, sampler = run.plan.config.learner, run.plan.config.sampler
    in_hands = 2 * learner.batch_size * learner.num_batches_per_epoch + run.plan.num_slots * sampler.rollout
    assert -in_hands * len(lost) <= not_seen * learner.batch_size - num_lost <= 2 * len(lost) * learner.batch_size
    assert saved.state["trained_steps"] + num_lost == saved.state["env_steps"]


@pytest.mark.parametrize(
    "fault", ["environment raises", "reward is NaN", "environment hangs", "environment kills its process"]
)
def test_environments_that_fail_are_made_anew_and_training_goes_on(run, fault):
    inflict(fault, run)
