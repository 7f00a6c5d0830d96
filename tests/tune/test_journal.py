"""The file of a study on a full disk, after a kill in the middle of a line, and with a damaged line."""

import subprocess
import sys

import pytest
from full_disk import full_disk
from test_tuner import Hunt

from sf.tune.journal import Journal


@pytest.fixture
def hunt(tmp_path):
    """A search of two trials that has ended."""
    hunt = Hunt(tmp_path, trials=2)
    hunt.start(hunt.ends_at_once)
    return hunt


def more(tmp_path, trials):
    """The same search with more trials."""
    return Hunt(tmp_path, trials=trials)


def journal(hunt):
    return hunt.directory / "study.journal"


def test_a_search_goes_on_where_a_kill_has_torn_the_last_line(tmp_path, hunt):
    whole = journal(hunt).read_bytes()
    journal(hunt).write_bytes(whole + b'{"op_code":5,"wor')
    for trials in (3, 4):
        hunt = more(tmp_path, trials)
        hunt.start(hunt.ends_at_once)
        assert hunt.states() == ["COMPLETE"] * trials
    assert journal(hunt).read_bytes().startswith(whole)


def test_a_full_disk_ends_the_search_in_one_sentence_and_the_next_start_goes_on(tmp_path, hunt):
    full = more(tmp_path, trials=3)
    with (
        full_disk(journal(hunt).stat().st_size + 30),
        pytest.raises(ValueError, match=r"study\.journal cannot be written \(File too large\): the search ends"),
    ):
        full.start(full.ends_at_once)
    hunt = more(tmp_path, trials=3)
    hunt.start(hunt.ends_at_once)
    assert hunt.states() == ["COMPLETE"] * 3


@pytest.mark.parametrize("line", [b'{"op_code":5,{"op_code":6}', b"\xff\xfe", b"3", b"[" * 100_000])
def test_a_damaged_line_is_one_sentence_with_its_place(tmp_path, hunt, line):
    first, rest = journal(hunt).read_bytes().split(b"\n", 1)
    journal(hunt).write_bytes(first + b"\n" + line + b"\n" + rest)
    with pytest.raises(ValueError, match=r"study\.journal, line 2, is damaged: put back a copy"):
        more(tmp_path, trials=3).start(hunt.ends_at_once)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, hunt):
    journal(hunt).unlink()
    journal(hunt).mkdir()
    with pytest.raises(ValueError, match=r"study\.journal cannot be read \(Is a directory\)"):
        more(tmp_path, trials=3).start(hunt.ends_at_once)


@pytest.mark.parametrize("is_alive", [False, True])
def test_the_lock_of_a_process_that_was_killed_is_taken_away_at_once_and_that_of_a_living_one_is_left(
    tmp_path, hunt, is_alive
):
    lock = journal(hunt).with_name("study.journal.lock")
    code = f"from sf.tune.journal import _FileLock as Lock; Lock({str(journal(hunt))!r}).acquire(); print(); input()"
    owner = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout.readline()
    if not is_alive:
        owner.kill()
        owner.wait()
    assert lock.exists()
    try:
        Journal(journal(hunt))
        assert lock.exists() == is_alive
    finally:
        owner.kill()
        owner.communicate()


@pytest.mark.parametrize("left", ["", "some other text", "12"])
def test_a_lock_that_names_no_process_is_left_to_optuna(hunt, left):
    lock = journal(hunt).with_name("study.journal.lock")
    lock.write_text(left)
    Journal(journal(hunt))
    assert lock.read_text() == left
