"""A run that begins anew where another one is: what is there is lost only when the new one is under way."""

import io
import os
import shutil
import signal

import pytest
from runs import flags_of_run

from sf.run import lifetime, trainer
from sf.storage.earlier_run import EarlierRun, left_behind
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli

BUDGET = ["--train_for_env_steps", "640"]


@pytest.fixture
def run_dir(tmp_path):
    """Of an earlier run."""
    run_dir = RunDir.at(str(tmp_path), "toy_identity")
    run_dir.prepare(cli.parse(flags_of_run(tmp_path)))
    run_dir.summary.write_text("earlier")
    return run_dir


def train(tmp_path, restart_behavior, on_record=None):
    flags = flags_of_run(tmp_path, *BUDGET, "--restart_behavior", restart_behavior)
    return trainer.train(cli.parse(flags), on_record)


def names(path):
    return sorted(entry.name for entry in path.iterdir() if entry.suffix != ".lock")


@pytest.mark.parametrize("restart_behavior", ["resume", "restart", "overwrite"])
def test_a_run_that_cannot_start_leaves_the_earlier_one_at_its_place(
    tmp_path, run_dir, monkeypatch, capsys, restart_behavior
):
    def fail(*_):
        raise ValueError("there is no room")

    monkeypatch.setattr(lifetime.RunMemory, "allocate", fail)
    with pytest.raises(ValueError, match="there is no room"):
        train(tmp_path, restart_behavior)
    assert names(tmp_path) == ["toy_identity"]
    assert run_dir.summary.read_text() == "earlier"
    assert (str(run_dir.path) in capsys.readouterr().out) == (restart_behavior != "resume")
    with open("/dev/full", "wb", buffering=0) as full:  # also where nobody reads that
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(full, write_through=True))
        with pytest.raises(ValueError, match="there is no room"):
            train(tmp_path, restart_behavior)
    assert run_dir.summary.read_text() == "earlier"


@pytest.mark.parametrize(
    ("restart_behavior", "signum"),
    [("overwrite", signal.SIGTERM), ("restart", signal.SIGHUP)],
)
def test_a_start_that_is_asked_to_end_puts_the_earlier_run_back(
    tmp_path, run_dir, monkeypatch, restart_behavior, signum
):
    before = signal.signal(signum, signal.SIG_DFL)

    def ask(*_):
        assert signal.getsignal(signum) != signal.SIG_DFL  # which would end these tests
        os.kill(os.getpid(), signum)

    monkeypatch.setattr(lifetime.RunMemory, "allocate", ask)
    try:
        with pytest.raises(SystemExit) as end:
            train(tmp_path, restart_behavior)
        assert signal.getsignal(signum) == signal.SIG_DFL
    finally:
        signal.signal(signum, before)
    assert end.value.code == 128 + signum
    assert names(tmp_path) == ["toy_identity"]
    assert run_dir.summary.read_text() == "earlier"


@pytest.mark.parametrize("restart_behavior", ["resume", "restart"])
def test_a_run_that_is_asked_to_end_before_it_is_under_way_does_not_say_that_it_saves(
    tmp_path, run_dir, monkeypatch, capsys, restart_behavior
):
    seen = []

    def start(*_):
        seen.append(run_dir.summary.exists())
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(lifetime.Supervisor, "start", start)
    assert train(tmp_path, restart_behavior)["stopped_by"] == "SIGTERM"
    assert seen == [False]  # it may be killed now, and is not done
    said = capsys.readouterr().out
    if restart_behavior == "resume":
        assert '"stopped_by": "SIGTERM"' in run_dir.summary.read_text()
    else:
        assert "SIGTERM: the run ends\n" in said
        assert run_dir.summary.read_text() == "earlier"


def test_overwrite_deletes_the_earlier_run_when_the_new_one_is_under_way(tmp_path, run_dir, capsys):
    killed = run_dir.path.rename(run_dir.path.with_name("toy_identity.overwritten1"))  # by a start that was killed
    run_dir.prepare(cli.parse(flags_of_run(tmp_path)))
    seen = []

    def look(_record):
        seen.append(names(tmp_path))

    train(tmp_path, "overwrite", look)
    assert seen[-1] == names(tmp_path) == ["toy_identity", "toy_identity.overwritten1"]
    assert '"env_steps"' in run_dir.summary.read_text()
    assert f"{killed} " in capsys.readouterr().out


def test_a_link_to_a_run_stays_and_the_new_run_is_where_the_earlier_one_was(tmp_path):
    here, big = tmp_path / "here", tmp_path / "big"
    for path in (here, big):
        path.mkdir()
    run_dir = RunDir(big / "toy")
    run_dir.prepare(cli.parse(flags_of_run(here)))
    (here / "toy_identity").symlink_to("../big/toy")
    refusals = []

    def start_another(_record):
        with pytest.raises(ValueError, match="is running in") as refusal:
            train(here, "resume")
        refusals.append(refusal)

    train(here, "restart", start_another)
    assert refusals
    assert os.readlink(here / "toy_identity") == "../big/toy"
    assert (names(here), names(big)) == (["toy_identity"], ["toy", "toy.old1"])
    assert run_dir.summary.exists()


def test_an_overwritten_run_that_cannot_be_deleted_is_said(tmp_path, said):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to("elsewhere")
    EarlierRun(tmp_path / "run", "overwrite").settle()
    assert str(tmp_path / "run.overwritten1") in said[0]
    assert (tmp_path / "elsewhere").is_dir()


def test_where_the_earlier_run_is_is_said_if_it_cannot_be_put_back(tmp_path, monkeypatch, said):
    (tmp_path / "run").mkdir()
    earlier = EarlierRun(tmp_path / "run", "restart")
    (tmp_path / "run").mkdir()  # of the new run

    def fail(_path):
        raise OSError("the disk is gone")

    monkeypatch.setattr(shutil, "rmtree", fail)
    earlier.put_back()
    assert str(tmp_path / "run.old1") in said[0]
    assert (tmp_path / "run.old1").is_dir()


def test_what_killed_starts_left_is_found_whatever_the_name_of_the_run(tmp_path):
    (tmp_path / "run[1].overwritten1").mkdir()
    assert left_behind(tmp_path / "run[1]") == [tmp_path / "run[1].overwritten1"]
    assert left_behind(tmp_path / "run1") == []
