"""Jobs of a stand-in for SLURM whose runs only claim to train: what becomes of them, whatever the cluster does."""

import json
import os
import pickle
import signal
import sys
from dataclasses import dataclass, field

import pytest

from sf.config import Config
from sf.envs.errors import UsageError
from sf.system.processes.stopping import Signals
from sf.tools.sweep.launchers import slurm
from sf.tools.sweep.launchers.slurm_flags import SlurmFlags
from sf.tools.sweep.launchers.slurm_jobs import read_jobs

# It says that it runs, and saves and ends when it is asked to; when it has saved, it goes on to its end.
TRAINS = """
import pathlib, signal, sys
saved, told = pathlib.Path(sys.argv[1]), sys.argv[2]
def save(*_):
    saved.touch()
    raise SystemExit(130)
signal.signal(signal.SIGINT, save)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
has_saved = saved.exists()
print("goes on" if has_saved else "begins", flush=True)
with open(told, "w"):
    pass
if not has_saved:
    signal.pause()
"""
FAILS = "print('no such environment'); raise SystemExit(2)"
ENDS = "print('done')"


@dataclass(frozen=True)
class Run:
    """In the place of a SweepRun."""

    name: str
    program: str
    flags: dict = field(default_factory=lambda: {"num_workers": 2}, compare=False)

    def command(self, directory):
        return [sys.executable, "-S", "-c", self.program, str(directory / "saved"), str(directory / "begun")]


class Desk:
    """Where a sweep is watched from; `sit_down` is one start of the command."""

    def __init__(self, directory):
        self.directory = directory
        self.begun = directory / "begun"
        self.said = []
        directory.mkdir()

    def sit_down(self, places=4, **flags):
        self.launcher = slurm.SlurmLauncher(SlurmFlags(**flags), [Config().replace(num_workers=2)], places)
        self.launcher.require()
        self.launcher.open(self.directory, places, self.said.append)
        return self.launcher

    def ends(self, num=1):
        """The next ends, as (name, status)."""
        found, signals = [], Signals()
        while len(found) < num:
            found += [(run.name, status) for run, status in self.launcher.wait(signals)]
        return found

    def wait_until_it_trains(self):
        self.begun.read_bytes()  # a pipe

    def look(self, is_so):
        signals = Signals()
        while not is_so():
            assert list(self.launcher.wait(signals)) == []


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "_LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(slurm, "_ASK_EVERY_S", 0.0)
    monkeypatch.setattr(slurm, "_SEEN_WITHIN_S", 0.0)
    made = Desk(tmp_path / "sweep")
    made.begun.touch()
    return made


@pytest.fixture
def watched(desk):
    """Runs say there that they have begun."""
    desk.begun.unlink()
    os.mkfifo(desk.begun)
    return desk


TRAINING = Run("seed=0", TRAINS)


def test_a_run_that_ends_by_itself_has_its_status_and_its_last_words(cluster, desk):
    launcher = desk.sit_down()
    wrong, right = Run("seed=0", FAILS), Run("seed=1", ENDS)
    assert [launcher.start(run) for run in (wrong, right)] == ["submitted job 101:", "submitted job 102:"]
    assert sorted(desk.ends(2)) == [("seed=0", 2), ("seed=1", 0)]
    assert launcher.last_words(wrong) == "no such environment"
    assert launcher.log(wrong).read_text() == "no such environment\n"
    assert launcher.is_empty
    assert json.loads((desk.directory / "slurm" / "jobs.json").read_text()) == []


def test_a_job_that_the_cluster_loses_is_replaced_as_often_as_was_said(cluster, watched):
    launcher = watched.sit_down(retries=1)
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    cluster.lose("101", "NODE_FAIL")
    watched.look(lambda: len(cluster.ids) == 2)
    assert watched.said == ["job 101 of seed=0 has ended as NODE_FAIL: job 102 goes on with it (1 of 1)"]
    watched.wait_until_it_trains()
    cluster.lose("102", "TIMEOUT")
    assert watched.ends() == [("seed=0", 1)]
    assert launcher.last_words(TRAINING) == "job 102 has ended as TIMEOUT, the last of 2 that did"


def test_before_its_time_limit_a_run_saves_and_its_job_is_queued_again(cluster, watched):
    launcher = watched.sit_down(retries=1)
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    cluster.signal("101", signal.SIGUSR2)  # all of its processes: the run itself would die of it
    watched.wait_until_it_trains()
    assert watched.ends() == [("seed=0", 0)]
    assert launcher.log(TRAINING).read_text() == "begins\ngoes on\n"
    assert cluster.ids == ["101"]
    assert watched.said == []


def test_a_run_that_is_at_its_time_limit_too_often_says_so(cluster, watched):
    launcher = watched.sit_down(retries=0)
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    cluster.signal("101", signal.SIGUSR2)
    assert watched.ends() == [("seed=0", 1)]
    assert "it was at its time limit, or had to make room, once more than --retries" in launcher.last_words(TRAINING)


def test_a_run_that_was_asked_to_end_by_others_than_the_user_goes_on_as_another_job(cluster, watched):
    """As where a machine shuts down: SLURM calls it a failure."""
    watched.sit_down().start(TRAINING)
    watched.wait_until_it_trains()
    cluster.signal("101", signal.SIGTERM)
    watched.look(lambda: len(cluster.ids) == 2)
    watched.wait_until_it_trains()


def test_a_job_that_was_cancelled_is_a_run_that_was_stopped(cluster, watched):
    launcher = watched.sit_down()
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    launcher.interrupt(TRAINING)
    assert watched.ends() == [("seed=0", 143)]
    assert cluster.ids == ["101"]


def test_jobs_go_on_without_the_command_and_are_not_submitted_again(cluster, watched):
    launcher = watched.sit_down()
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    assert list(launcher.stop(Signals())) == []
    assert watched.said == ["jobs that go on without this command: 101; scancel ends them, after they saved"]
    assert cluster.state("101") == "RUNNING"
    again = watched.sit_down()
    assert again.start(TRAINING) == "job 101 goes on:"
    cluster.signal("101", signal.SIGUSR2)
    watched.wait_until_it_trains()
    assert watched.ends() == [("seed=0", 0)]
    assert cluster.ids == ["101"]


def test_a_job_that_was_lost_while_nobody_watched_is_not_watched_again(cluster, watched):
    watched.sit_down().start(TRAINING)
    watched.wait_until_it_trains()
    cluster.lose("101", "NODE_FAIL")
    cluster.forget("101")
    assert watched.sit_down().start(TRAINING) == "submitted job 102:"
    watched.wait_until_it_trains()


def test_of_a_job_that_squeue_has_forgotten_the_accounting_tells(cluster, watched):
    watched.sit_down().start(TRAINING)
    watched.wait_until_it_trains()
    cluster.lose("101", "OUT_OF_MEMORY")
    cluster.forget("101")
    assert watched.ends() == [("seed=0", 1)]
    assert watched.launcher.last_words(TRAINING) == "job 101 has ended as OUT_OF_MEMORY"


def test_there_are_no_more_jobs_at_once_than_places_and_those_that_wait_are_told_from_others(cluster, watched):
    cluster.hold()
    launcher = watched.sit_down(places=1)
    launcher.start(TRAINING)
    assert not launcher.has_place
    list(launcher.wait(Signals()))
    assert launcher.is_queued(TRAINING)
    cluster.release()
    watched.wait_until_it_trains()
    watched.look(lambda: not launcher.is_queued(TRAINING))


def test_where_slurm_does_not_answer_jobs_count_as_going_on_and_it_is_said_once(cluster, watched):
    launcher = watched.sit_down()
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    cluster.break_squeue("slurm_load_jobs error: Unable to contact slurm controller")
    for _ in range(3):
        assert list(launcher.wait(Signals())) == []
    assert len(watched.said) == 1
    assert "Unable to contact slurm controller" in watched.said[0]
    assert watched.sit_down().start(TRAINING) == "job 101 goes on:"


def test_a_lost_job_is_replaced_later_where_sbatch_does_not_take_another_now(cluster, watched):
    launcher = watched.sit_down()
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    cluster.break_sbatch("Unable to contact slurm controller")
    cluster.lose("101", "NODE_FAIL")
    watched.look(lambda: watched.said)
    assert list(launcher.wait(Signals())) == []
    [said] = watched.said
    assert said.startswith("job 101 of seed=0 has ended as NODE_FAIL, and no other yet (sbatch does not take the job")
    cluster.break_sbatch(None)
    watched.look(lambda: len(cluster.ids) == 2)
    watched.wait_until_it_trains()


def test_what_sbatch_refuses_while_jobs_go_on_may_be_submitted_later(cluster, watched, monkeypatch):
    launcher, other = watched.sit_down(), Run("seed=1", ENDS)
    cluster.break_sbatch("Job violates accounting policy")
    with pytest.raises(UsageError, match="Job violates accounting policy"):
        launcher.start(other)
    cluster.break_sbatch(None)
    launcher.start(TRAINING)
    watched.wait_until_it_trains()
    cluster.break_sbatch("Job violates accounting policy")
    with pytest.raises(OSError, match="Job violates accounting policy"):
        launcher.start(other)
    cluster.break_sbatch(None)
    assert launcher.has_place
    monkeypatch.setattr(slurm, "_ASK_EVERY_S", 60.0)
    assert not launcher.has_place
    cluster.signal("101", signal.SIGUSR2)
    watched.wait_until_it_trains()
    assert watched.ends() == [("seed=0", 0)]
    assert launcher.has_place


def test_what_is_remembered_of_jobs_is_believed_only_where_it_is_one(tmp_path):
    row = '[{"run": "seed=0", "job": "101", "folder": "job-a", "lost": 0}]'
    (tmp_path / "jobs.json").write_text(row)
    assert read_jobs(tmp_path / "jobs.json").keys() == {"seed=0"}
    for text in (
        "no json",
        row.replace("101", "--signal=9"),
        '{"seed=0": "101"}',
    ):
        (tmp_path / "jobs.json").write_text(text)
        assert read_jobs(tmp_path / "jobs.json") == {}


def test_no_pickle_is_read_where_the_sweep_is_watched(cluster, desk, monkeypatch):
    launcher = desk.sit_down()
    launcher.start(Run("seed=0", ENDS))
    monkeypatch.setattr(pickle, "load", None)
    assert desk.ends() == [("seed=0", 0)]
    [folder] = (path for path in (desk.directory / "slurm").iterdir() if path.is_dir())
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "101_submitted.pkl").exists()
