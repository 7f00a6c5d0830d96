"""The file of a study on a full disk, after a kill in the middle of a line, and with a damaged line."""

import pytest
from full_disk import full_disk
from test_tuner import Hunt

from sf.envs.errors import UsageError


@pytest.fixture
def hunt(tmp_path):
    """A search of two trials that has ended."""
    hunt = Hunt(tmp_path, trials=2)
    hunt.start(hunt.ends_at_once)
    return hunt


def journal(hunt):
    return hunt.directory / "study.journal"


def test_a_search_goes_on_where_a_kill_has_torn_the_last_line(tmp_path, hunt):
    whole = journal(hunt).read_bytes()
    journal(hunt).write_bytes(whole + b'{"op_code":5,"wor')
    for trials in (3, 4):
        hunt = Hunt(tmp_path, trials=trials)
        hunt.start(hunt.ends_at_once)
        assert hunt.states() == ["COMPLETE"] * trials
    assert journal(hunt).read_bytes().startswith(whole)


def test_a_full_disk_ends_the_search_in_one_sentence_and_the_next_start_goes_on(tmp_path, hunt):
    full = Hunt(tmp_path, trials=3)
    with (
        full_disk(journal(hunt).stat().st_size + 30),
        pytest.raises(ValueError, match=r"study\.journal cannot be written \(File too large\): the search ends"),
    ):
        full.start(full.ends_at_once)
    hunt = Hunt(tmp_path, trials=3)
    hunt.start(hunt.ends_at_once)
    assert hunt.states() == ["COMPLETE"] * 3


def test_a_damaged_file_is_one_sentence(tmp_path, hunt):
    first, rest = journal(hunt).read_bytes().split(b"\n", 1)
    journal(hunt).write_bytes(first + b'\n{"op_code":5,{"op_code":6}\n' + rest)
    with pytest.raises(UsageError, match=r"study\.journal cannot be read"):
        Hunt(tmp_path, trials=3).start(hunt.ends_at_once)
