"""Finished matches outlive the processes that know of them."""

import errno
import io
import shutil
from pathlib import Path

import pytest

from sf.storage import match_journal
from sf.storage.match_journal import DIRECTORY, Journal, JournalReader, PlayedMatch

FIRST, SECOND, THIRD = (PlayedMatch((0, 1), (float(n), -float(n))) for n in (1, 2, 3))


@pytest.fixture
def reader(tmp_path):
    return JournalReader(tmp_path, {})


def matches(found):
    return [match for _, _, match in found]


def files(run_dir):
    return sorted((run_dir / DIRECTORY).iterdir())


def test_each_match_is_read_once_with_its_line(tmp_path, reader):
    journal = Journal(tmp_path)
    journal.add([])
    assert not (tmp_path / DIRECTORY).exists()  # no match, no file
    assert reader.read(2, 2) == []
    journal.add([FIRST, SECOND])
    (path,) = files(tmp_path)
    assert reader.read(2, 2) == [(path.stem, 1, FIRST), (path.stem, 2, SECOND)]
    assert reader.read(2, 2) == []
    with path.open("ab") as file:
        file.write(b"[[0, 1], [3.0,")
    assert reader.read(2, 2) == []  # it waits for a line that is not whole yet
    with path.open("ab") as file:
        file.write(b" -3.0]]\n")
    assert reader.read(2, 2) == [(path.stem, 3, THIRD)]
    Journal(tmp_path).add([FIRST])  # another worker has a file of its own
    assert len(files(tmp_path)) == 2
    of_record = JournalReader(tmp_path, {path.stem: 2})
    of_record.remove_all()  # nothing that was not read
    assert set(matches(of_record.read(2, 2))) == {THIRD, FIRST}


def test_a_line_that_is_no_match_is_left_out_with_a_sentence(tmp_path, said):
    Journal(tmp_path).add([FIRST])
    (path,) = files(tmp_path)
    whole = path.read_text()
    for line in (
        *("", "{}", "[1]", "[[0, 1]]", "[[0, 1], [1.0]]", "[[], []]", "[[0, 4], [1.0, 0.0]]", "[[2, 3], [1.0, 0.0]]"),
        *("[[0, -1], [1.0, 0.0]]", "[[0, true], [1.0, 0.0]]", "[[0, 1], [1.0, NaN]]", '[[0, 1], [1.0, "a"]]'),
        *(f"[[0, 1], [1{'0' * 400}, 0.0]]", "[" * 100_000),
    ):
        path.write_text(f"{line}\n{whole}")
        assert JournalReader(tmp_path, {}).read(2, 4) == [(path.stem, 2, FIRST)]
        assert f"line 1 of {path}" in said.pop()


def test_a_large_file_is_followed_by_another_one_and_removed(tmp_path, reader, monkeypatch):
    monkeypatch.setattr(match_journal, "_LARGEST", 20)
    journal = Journal(tmp_path)
    journal.add([FIRST])
    journal.add([SECOND])
    journal.add([THIRD])
    assert [path.stem[-2:] for path in files(tmp_path)] == ["-0", "-1", "-2"]
    reader.remove_ended()
    assert len(files(tmp_path)) == 3  # nobody has read them
    assert matches(reader.read(2, 2)) == [FIRST, SECOND, THIRD]
    reader.remove_ended()
    assert [path.stem[-2:] for path in files(tmp_path)] == ["-2"]
    assert reader.read(2, 2) == []
    reader.remove_all()
    assert not (tmp_path / DIRECTORY).exists()


def test_a_file_that_has_grown_since_it_was_read_is_not_removed(tmp_path, reader, monkeypatch):
    journal = Journal(tmp_path)
    journal.add([FIRST])
    assert matches(reader.read(2, 2)) == [FIRST]
    journal.add([SECOND])  # while the record is written
    monkeypatch.setattr(match_journal, "_LARGEST", 20)
    journal.add([THIRD])
    reader.remove_ended()
    assert matches(reader.read(2, 2)) == [SECOND, THIRD]
    reader.remove_ended()
    assert [path.stem[-2:] for path in files(tmp_path)] == ["-1"]


@pytest.mark.parametrize("fate", ["moved", "moved, and made again", "removed"])
def test_after_a_run_directory_is_moved_the_matches_are_where_the_record_looks_for_them(tmp_path, said, fate):
    run_dir, moved = tmp_path / "run", tmp_path / "moved"
    reader, journal = JournalReader(run_dir, {}), Journal(run_dir)
    journal.add([FIRST])
    assert matches(reader.read(2, 2)) == [FIRST]
    (path,) = files(run_dir)
    run_dir.rename(moved)
    if fate == "moved, and made again":
        path.parent.mkdir(parents=True)
        path.write_text("")
    elif fate == "removed":
        shutil.rmtree(moved)
    for match in (SECOND, THIRD):
        journal.add([match])
        assert matches(reader.read(2, 2)) == [match]
    assert matches(JournalReader(moved, {}).read(2, 2)) == ([] if fate == "removed" else [FIRST])
    assert said == []


def test_matches_wait_for_a_disk_that_is_full(tmp_path, reader, monkeypatch):
    journal = Journal(tmp_path)
    journal.add([FIRST])

    class Full(io.FileIO):
        """Takes ten bytes of what it is given, and then nothing."""

        def write(self, data):
            if self.tell() - begins >= 10:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data[:10])

    (path,) = files(tmp_path)
    begins = path.stat().st_size
    journal._file = Full(path, "ab")
    journal.add([SECOND])
    journal.add([])
    assert path.stat().st_size == begins  # no part of a line is left
    journal._file = Path.open(path, "ab", buffering=0)
    journal.add([THIRD])
    assert matches(reader.read(2, 2)) == [FIRST, SECOND, THIRD]


def test_it_writes_through_no_link(tmp_path, reader, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    journal = Journal(tmp_path)
    (tmp_path / DIRECTORY).mkdir(parents=True)
    (tmp_path / DIRECTORY / f"{journal._name}-0.jsonl").symlink_to(elsewhere)
    journal.add([FIRST])
    assert elsewhere.read_text() == ""
