"""What a learner's state knows of time, and when it is written."""

import dataclasses
import errno
import math
import os
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from allocated import allocate, learner_args
from full_disk import full_disk
from recorded_reports import RecordedReports

from sf.config import Config
from sf.learner import state
from sf.learner.checkpoints import saver
from sf.learner.checkpoints.saver import Saver
from sf.learner.state import LearnerState
from sf.storage import checkpoint
from sf.system.processes.child import FinalError

HOUR = 3600.0


class Run:
    """A run whose clock is set by hand; it began at 0."""

    def __init__(self, path):
        self.now = 0.0
        self.full, self.room_at = ExitStack(), math.inf
        config = Config().replace(
            env="toy_identity", num_workers=1, encoder_mlp_layers=(8,), device="cpu", save_milestones_sec=HOUR
        )
        memory = allocate(config, path)
        self._memory = dataclasses.replace(memory, started_at=0.0)
        self.milestones = path / "checkpoints" / "milestones"
        self.reports = RecordedReports()

    def learner(self, predecessor_env_steps=None, published_version=0):
        """Its state, and what saves that."""
        args = learner_args(self._memory, predecessor_env_steps=predecessor_env_steps)
        state = LearnerState(args, published_version)
        return state, Saver(args, state, self.reports)

    def remembered(self):
        return self._memory.recoveries[0].read()

    def sleep(self, seconds):
        self.now += seconds
        if self.now >= self.room_at:
            self.full.close()

    def kept(self):
        return sorted(path.name for path in self.milestones.glob("*"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    made = Run(tmp_path)
    clock = SimpleNamespace(monotonic=lambda: made.now, sleep=made.sleep)  # that of the wall may be set
    for module in (state, saver):
        monkeypatch.setattr(module, "time", clock)
    return made


def test_the_seconds_of_a_run_count_once_however_often_its_learner_is_replaced(run):
    learner, saver = run.learner()
    for _ in range(3):
        run.now += 100.0
        saver.remember_if_due()
        learner, saver = run.learner(predecessor_env_steps=0)
    run.now += 100.0
    assert learner.seconds == run.now == 400.0


@pytest.mark.parametrize(("published_version", "version"), [(0, 10), (10, 10), (12, 13)])
def test_a_successor_publishes_no_version_that_other_weights_have(run, published_version, version):
    first, saver = run.learner()
    first.updater.version = 10
    saver.remember_if_due()
    assert run.learner(predecessor_env_steps=0, published_version=published_version)[0].updater.version == version


def test_a_milestone_is_kept_each_time_that_so_many_seconds_of_the_run_have_passed(run, said):
    learner, saver = run.learner()
    for minute in range(1, 151):
        run.now = 60.0 * minute
        learner.env_steps = minute
        saver.keep_milestone_if_due()
    assert run.kept() == [
        "milestone_000001_000000000060.safetensors",
        "milestone_000002_000000000120.safetensors",
    ]
    assert checkpoint.load(run.milestones / run.kept()[1]).state["env_steps"] == 120
    assert len(said) == 2


def test_a_learner_that_takes_over_or_resumes_keeps_the_next_one_and_overwrites_none(run):
    _, first = run.learner()
    run.now = 1.5 * HOUR
    first.keep_milestone_if_due()
    first.remember_if_due()
    _, second = run.learner(predecessor_env_steps=0)
    second.keep_milestone_if_due()
    assert len(run.kept()) == 1  # that of the first hour is there
    run.now = 2.1 * HOUR
    second.keep_milestone_if_due()  # with as many env steps as the first had
    assert run.kept() == [f"milestone_00000{number}_000000000000.safetensors" for number in (1, 2)]


def test_a_full_disk_is_said_once_and_the_milestone_is_tried_again(run):
    _, saver = run.learner()
    with full_disk(100):
        for run.now in (HOUR, HOUR + 5, HOUR + 11):
            saver.keep_milestone_if_due()
    assert run.reports.kinds == ["SaveFailed"]
    run.now = HOUR + 20
    saver.keep_milestone_if_due()
    assert run.kept() == []
    run.now = HOUR + 21
    saver.keep_milestone_if_due()
    assert len(run.kept()) == 1


def test_the_last_save_waits_for_room_on_the_disk(run):
    learner, saver = run.learner()
    learner.env_steps = 640
    run.room_at = 4.0
    with run.full:
        run.full.enter_context(full_disk(100))
        saver.save_at_the_end()
    assert run.now == 4.0
    assert run.reports.kinds == ["SaveFailed", "Saved"]


@pytest.mark.parametrize(
    ("number", "how"),
    [(errno.ENOSPC, "make room there"), (errno.EDQUOT, "make room there"), (errno.EACCES, "make it writable")],
)
def test_a_last_save_that_is_refused_is_one_sentence_with_the_reason_and_leaves_the_state_to_the_parent(
    run, monkeypatch, number, how
):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    learner, saver = run.learner()
    learner.env_steps = 640
    monkeypatch.setattr(checkpoint, "save", refuse)
    with pytest.raises(FinalError, match=rf"checkpoints \(.*{os.strerror(number)}\): {how}\. The same command"):
        saver.save_at_the_end()
    assert run.now == 10.0
    assert run.remembered().state["env_steps"] == 640
