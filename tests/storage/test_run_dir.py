"""A run's directory: what is written there, and what is never lost."""

import errno
import os
import stat
from contextlib import nullcontext

import pytest

import sf.storage.run_dir
from sf.config import Config
from sf.storage.earlier_run import left_behind
from sf.storage.run_dir import RunDir, write_atomically


def config(restart_behavior="resume"):
    return Config().replace(env="toy_bandit", restart_behavior=restart_behavior)


@pytest.fixture
def run_dir(tmp_path):
    return RunDir.at(str(tmp_path), "toy_bandit")


def test_the_flags_of_a_run_are_read_back_as_they_were(run_dir):
    assert run_dir.saved_flags() is None
    run_dir.prepare(config())
    assert Config().replace(**run_dir.saved_flags()) == config()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\udcff", "cannot be read"),
        ("", "no env"),
        ("seed: 3\n", "no env"),
        ("- 1\n", "mapping"),
        ("env: [", "not YAML"),
        ("env: !!python/object/apply:os.mkdir [{made}]\n", "not YAML"),
    ],
)
def test_a_broken_configuration_is_refused_and_runs_no_code(run_dir, tmp_path, text, said):
    run_dir.prepare(config())
    run_dir.config.write_bytes(text.replace("{made}", str(tmp_path / "made")).encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=said):
        run_dir.saved_flags()
    assert not (tmp_path / "made").exists()


def test_what_a_kill_in_the_very_first_write_leaves_is_not_in_the_way(run_dir):
    run_dir.path.mkdir(parents=True)
    left_over = run_dir.path / ".config.yaml.123.tmp"
    left_over.write_text("env: toy_")
    run_dir.prepare(config())
    assert run_dir.saved_flags() is not None
    assert not left_over.exists()


def test_a_run_keeps_its_id_and_a_new_one_has_its_own(run_dir):
    assert run_dir.saved_id() is None
    run_dir.prepare(config(), "first")
    run_dir.prepare(config())
    assert run_dir.saved_id() == "first"
    earlier = run_dir.prepare(config("restart"), "second")
    assert run_dir.saved_id() == "second"
    earlier.put_back()
    assert run_dir.saved_id() == "first"


def test_restart_moves_every_earlier_run_aside(run_dir, tmp_path):
    for text in ("first", "second", "third"):
        run_dir.prepare(config("restart"))
        run_dir.summary.write_text(text)
    contents = {path.name: (path / "summary.json").read_text() for path in tmp_path.iterdir()}
    assert contents == {"toy_bandit.old1": "first", "toy_bandit.old2": "second", "toy_bandit": "third"}


def test_overwrite_removes_the_earlier_run_once_the_new_one_is_under_way(run_dir, tmp_path):
    run_dir.prepare(config())
    run_dir.summary.write_text("first")
    earlier = run_dir.prepare(config("overwrite"))
    assert not run_dir.summary.exists()
    (aside,) = left_behind(run_dir.path)
    assert (aside / "summary.json").read_text() == "first"
    earlier.settle()
    earlier.put_back()
    assert not run_dir.summary.exists()
    assert list(tmp_path.iterdir()) == [run_dir.path]


@pytest.mark.parametrize(
    ("error", "raised"),
    [(OSError(errno.ENOSPC, "No space left on device"), ValueError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
@pytest.mark.parametrize("restart_behavior", ["restart", "overwrite"])
def test_a_start_that_fails_leaves_the_earlier_run_at_its_place(
    run_dir, tmp_path, monkeypatch, restart_behavior, error, raised
):
    run_dir.prepare(config())
    run_dir.summary.write_text("first")
    run_dir.prepare(config(restart_behavior)).put_back()

    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(sf.storage.run_dir, "write_atomically", fail)
    with pytest.raises(raised):
        run_dir.prepare(config(restart_behavior))
    assert run_dir.summary.read_text() == "first"
    assert list(tmp_path.iterdir()) == [run_dir.path]
    assert run_dir.config.exists()


@pytest.mark.parametrize("restart_behavior", ["resume", "restart", "overwrite"])
def test_a_directory_that_is_not_a_run_is_left_alone(run_dir, tmp_path, restart_behavior):
    run_dir.path.mkdir()
    (run_dir.path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="not a run"):
        run_dir.prepare(config(restart_behavior))
    assert [p.name for p in run_dir.path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="--train_dir"):
        RunDir(run_dir.path / "thesis.tex" / "run").prepare(config(restart_behavior))


def test_a_write_waits_until_the_content_is_on_the_disk_and_then_the_name(tmp_path, monkeypatch):
    directory, fsync, synced = tmp_path / "run" / "part", os.fsync, []  # which is made

    def note(fd):
        synced.append((os.path.samestat(os.fstat(fd), os.stat(directory)), (directory / "file").exists()))
        fsync(fd)

    def interrupt(_fd):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", note)
    write_atomically(directory / "file", b"old")
    is_directory = has_name = True
    assert synced == [(not is_directory, not has_name), (is_directory, has_name)]
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(directory / "file", b"new")
    assert [path.read_bytes() for path in directory.iterdir()] == [b"old"]


@pytest.mark.parametrize(("number", "is_written"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)])
def test_a_file_system_that_syncs_no_directories_is_written_to(tmp_path, monkeypatch, number, is_written):
    fsync = os.fsync

    def of_files_alone(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", of_files_alone)
    with nullcontext() if is_written else pytest.raises(OSError, match=os.strerror(number)):
        write_atomically(tmp_path / "file", b"new")


@pytest.mark.parametrize("restart_behavior", ["resume", "restart", "overwrite"])
def test_a_start_that_fails_on_a_full_disk_leaves_its_name_free(run_dir, restart_behavior, monkeypatch):
    def full(_fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ValueError, match="No space left on device"):
            run_dir.prepare(config(restart_behavior))
    run_dir.prepare(config(restart_behavior))
    assert run_dir.saved_flags() is not None
    assert run_dir.checkpoints.is_dir()
