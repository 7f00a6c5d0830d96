"""The record of the machine: what is in it, each start, and whose commit."""

import subprocess

import pytest

from sf.metrics.system_info import commit_of, read_starts, record_start
from sf.storage.run_dir import RunDir


def git(directory, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_each_start_adds_an_entry_with_the_machine_and_the_versions(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    assert read_starts(run_dir) == []
    record_start(run_dir)
    record_start(run_dir)
    first, info = read_starts(run_dir)
    assert first["versions"] == info["versions"]
    assert info["cpu"]
    assert 1 <= info["usable_cores"] <= info["cores"]
    assert info["memory_gib"] > 0
    assert {"torch", "numpy", "gymnasium"} <= info["versions"].keys()
    with pytest.raises(ValueError, match="--train_dir"):
        record_start(RunDir(run_dir.system))


def test_the_commit_is_that_of_the_source_and_says_whether_it_was_changed(tmp_path):
    source, installed = tmp_path / "module.py", tmp_path / ".venv" / "module.py"
    source.write_text("a = 1\n")
    installed.parent.mkdir()
    installed.write_text("")
    git(tmp_path, "init")
    git(tmp_path, "add", "module.py")
    git(tmp_path, "commit", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert commit_of(source) == commit
    source.write_text("a = 2\n")
    assert commit_of(source) == f"{commit}-dirty"
    assert commit_of(installed) is None  # the repository is around it, and not its own
