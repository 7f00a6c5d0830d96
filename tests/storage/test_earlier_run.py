"""A run that begins anew where another one is: what is there is lost only when the new one is under way."""

import os
import signal

import pytest
from runs import flags_of_run

from sf.run import lifetime, trainer
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
def test_a_run_that_is_asked_to_end_before_it_is_under_way_puts_the_earlier_one_back(
    tmp_path, run_dir, monkeypatch, restart_behavior
):
    seen = []

    def start(*_):
        seen.append(run_dir.summary.exists())
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(lifetime.Supervisor, "start", start)
    assert train(tmp_path, restart_behavior)["stopped_by"] == "SIGTERM"
    assert seen == [False]  # it may be killed now, and is not done
    says = '"stopped_by": "SIGTERM"' if restart_behavior == "resume" else "earlier"
    assert says in run_dir.summary.read_text()


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
