"""A link in the place of a file that a run writes is not followed, and its target stays as it is."""

import pytest

from sf.config import Config
from sf.storage import text_files
from sf.storage.run_dir import RunDir, write_atomically
from sf.storage.run_lock import held
from sf.storage.run_log import RunLog
from sf.sweep.grid import SweepRun
from sf.sweep.launchers.local import LocalLauncher
from sf.sweep.launchers.training_job import TrainingJob
from sf.sweep.sweep_dir import log_of, make_directory


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "precious"
    path.write_text("years of work")
    yield path
    assert path.read_text() == "years of work"


def test_a_lock_that_is_a_link_is_refused(tmp_path, target):
    (tmp_path / ".run.lock").symlink_to(target)
    with pytest.raises(ValueError, match=r"\.run\.lock is a link.*remove it"), held(tmp_path / "run"):
        pass


@pytest.mark.parametrize("name", ["metrics.jsonl", "run.log", "config.yaml", "evaluations.jsonl", "summary.json"])
def test_a_run_with_a_link_among_its_files_is_refused(tmp_path, target, name):
    run_dir = RunDir.at(str(tmp_path), "toy_bandit")
    config = Config().replace(env="toy_bandit")
    run_dir.prepare(config)
    if name == "config.yaml":
        target = run_dir.config.rename(tmp_path / "config.yaml")
    (run_dir.path / name).symlink_to(target)
    with pytest.raises(ValueError, match=f"{name} is a link.*remove it"):
        run_dir.prepare(config)


def test_a_folder_of_a_run_may_be_a_link(tmp_path):
    run_dir = RunDir.at(str(tmp_path), "toy_bandit")
    run_dir.prepare(Config().replace(env="toy_bandit"))
    run_dir.checkpoints.rmdir()
    (tmp_path / "large_disk").mkdir()
    run_dir.checkpoints.symlink_to(tmp_path / "large_disk")
    run_dir.prepare(Config().replace(env="toy_bandit"))


def test_a_link_that_appears_later_is_not_written_through(tmp_path, target):
    for name in ("metrics.jsonl", "run.log"):
        (tmp_path / name).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        text_files.append(tmp_path / "metrics.jsonl", b"{}\n")
    RunLog(tmp_path / "run.log").write("a line")


def test_a_temporary_file_that_is_a_link_is_replaced(tmp_path, target, monkeypatch):
    monkeypatch.setattr("os.getpid", lambda: 7)
    (tmp_path / ".summary.json.7.tmp").symlink_to(target)
    write_atomically(tmp_path / "summary.json", b"{}")
    assert (tmp_path / "summary.json").read_bytes() == b"{}"
    assert not (tmp_path / "summary.json").is_symlink()


def test_a_sweep_writes_into_no_link_in_the_place_of_a_log(tmp_path, target):
    make_directory(tmp_path)
    log_of(tmp_path, "seed=0").symlink_to(target)
    with pytest.raises(ValueError, match=r"seed=0\.log is a link.*remove the link"):
        make_directory(tmp_path)


def test_a_run_of_a_sweep_writes_into_no_link_that_appears_later(tmp_path, target):
    run = SweepRun("seed=0", {}, 0, {"env": "toy_bandit", "num_workers": 1})
    launcher = LocalLauncher([Config().replace(env="toy_bandit", num_workers=1, device="cpu")], 1)
    launcher.open(tmp_path, 1, print)
    launcher.log(run).symlink_to(target)
    job = TrainingJob(["true"], launcher.log(run), tmp_path, 0)
    for start in (lambda: launcher.start(run), job):
        with pytest.raises(OSError, match="symbolic links"):
            start()
