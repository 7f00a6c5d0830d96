"""Finished matches outlive the processes that know of them."""

import errno
import io
from pathlib import Path

import pytest

from sf.storage import match_journal
from sf.storage.match_journal import DIRECTORY, Journal, JournalReader, PlayedMatch

FIRST, SECOND, THIRD = (PlayedMatch((0, 1), (float(n), -float(n))) for n in (1, 2, 3))


@pytest.fixture
def said():
    return []


@pytest.fixture
def reader(tmp_path, said):
    return JournalReader(tmp_path, {}, said.append)


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
    journal.add([THIRD])
    assert reader.read(2, 2) == [(path.stem, 3, THIRD)]


def test_what_the_record_has_is_not_read_again(tmp_path, said):
    Journal(tmp_path).add([FIRST, SECOND, THIRD])
    (path,) = files(tmp_path)
    assert matches(JournalReader(tmp_path, {path.stem: 2}, said.append).read(2, 2)) == [THIRD]


def test_workers_have_files_of_their_own(tmp_path, reader):
    Journal(tmp_path).add([FIRST])
    Journal(tmp_path).add([SECOND])
    assert len(files(tmp_path)) == 2
    assert set(matches(reader.read(2, 2))) == {FIRST, SECOND}


def test_a_line_that_is_not_whole_yet_waits(tmp_path, reader):
    Journal(tmp_path).add([FIRST])
    (path,) = files(tmp_path)
    reader.read(2, 2)
    with path.open("ab") as file:
        file.write(b"[[0, 1], [2.0,")
    assert reader.read(2, 2) == []
    with path.open("ab") as file:
        file.write(b" -2.0]]\n")
    assert matches(reader.read(2, 2)) == [SECOND]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[1]",
        "[[0, 1]]",
        "[[0, 1], [1.0]]",
        "[[], []]",
        "[[0, 4], [1.0, 0.0]]",
        "[[2, 3], [1.0, 0.0]]",
        "[[0, -1], [1.0, 0.0]]",
        "[[0, true], [1.0, 0.0]]",
        "[[0, 1], [1.0, NaN]]",
        '[[0, 1], [1.0, "a"]]',
        f"[[0, 1], [1{'0' * 400}, 0.0]]",
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_match_is_left_out_with_a_sentence(tmp_path, reader, said, line):
    Journal(tmp_path).add([FIRST])
    (path,) = files(tmp_path)
    path.write_text(f"{line}\n{path.read_text()}")
    assert reader.read(2, 4) == [(path.stem, 2, FIRST)]
    assert said == [f"league: line 1 of {path} is no match between players: it is left out"]


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


def test_a_file_that_was_not_read_is_not_removed(tmp_path, reader):
    Journal(tmp_path).add([FIRST])
    reader.remove_all()
    assert matches(reader.read(2, 2)) == [FIRST]


def test_a_file_that_somebody_removes_is_begun_anew(tmp_path, reader):
    journal = Journal(tmp_path)
    journal.add([FIRST])
    reader.read(2, 2)
    files(tmp_path)[0].unlink()
    (tmp_path / DIRECTORY).rmdir()
    journal.add([SECOND])
    assert matches(reader.read(2, 2)) == [SECOND]


@pytest.mark.parametrize("is_made_again", [False, True])
def test_after_a_run_directory_is_moved_the_matches_are_where_the_record_looks_for_them(tmp_path, said, is_made_again):
    run_dir, moved = tmp_path / "run", tmp_path / "moved"
    reader, journal = JournalReader(run_dir, {}, said.append), Journal(run_dir)
    journal.add([FIRST])
    assert matches(reader.read(2, 2)) == [FIRST]
    (path,) = files(run_dir)
    run_dir.rename(moved)
    if is_made_again:
        path.parent.mkdir(parents=True)
        path.write_text("")
    for match in (SECOND, THIRD):
        journal.add([match])
        assert matches(reader.read(2, 2)) == [match]
    assert matches(JournalReader(moved, {}, said.append).read(2, 2)) == [FIRST]
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
