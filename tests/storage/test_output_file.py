"""A result goes to the file that was named, whole, or there is one sentence before the work."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from full_disk import full_disk

from sf.storage import output_file


def test_missing_directories_are_made_and_nothing_else_is_left_there(tmp_path):
    path = tmp_path / "a" / "b" / "result.json"
    output_file.require_writable("json", path)
    assert list(path.parent.iterdir()) == []
    output_file.write("json", path, b"1")
    output_file.write("json", path, b"2")
    assert path.read_bytes() == b"2"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["", "file/result.json"])
def test_what_cannot_be_written_is_refused_before_the_work_and_after_it(tmp_path, name):
    (tmp_path / "file").touch()
    for refused in (
        lambda: output_file.require_writable("json", tmp_path / name),
        lambda: output_file.write("json", tmp_path / name, b"1"),
    ):
        with pytest.raises(ValueError, match="another --json"):
            refused()


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    output_file.require_writable("json", link)
    output_file.write("json", link, b"1")
    assert link.is_symlink()
    assert target.read_bytes() == b"1"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output_file.require_writable("json", pipe)
    output_file.write("json", pipe, b"2")
    assert os.read(reader, 10) == b"2"
    os.close(reader)


def test_a_disk_that_is_full_leaves_the_old_file_behind_a_link(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to("elsewhere/target")
    with full_disk(100), pytest.raises(ValueError, match="cannot be written"):
        output_file.write("json", link, bytes(1000))
    assert target.read_bytes() == b"old"
    output_file.write("json", link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_that_the_user_did_not_name_is_refused_and_its_target_stays(tmp_path):
    target, link = tmp_path / "target", tmp_path / "report.html"
    link.symlink_to(target)
    with pytest.raises(ValueError, match=r"report\.html is a link"):
        output_file.require_writable("out", link, is_named=False)
    with pytest.raises(ValueError, match=r"report\.html is a link"):
        output_file.write("out", link, b"1", is_named=False)
    assert not target.exists()
    link.unlink()
    output_file.write("out", link, b"2", is_named=False)
    assert link.read_bytes() == b"2"


OLD, NEW = ({name: f"{age} {name}".encode() for name in ("weights", "config", "card")} for age in ("old", "new"))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_full_disk_leaves_all_files_of_a_folder_as_they_were(tmp_path):
    output_file.write_folder("out", tmp_path, OLD)
    with full_disk(100), pytest.raises(ValueError, match="another --out"):
        output_file.write_folder("out", tmp_path, {**NEW, "card": bytes(1000)})
    assert contents(tmp_path) == OLD
    output_file.write_folder("out", tmp_path, NEW)
    assert contents(tmp_path) == NEW


@pytest.mark.parametrize("num_renamed", range(4))
def test_after_a_kill_no_card_is_beside_weights_of_another_time(tmp_path, monkeypatch, num_renamed):
    output_file.write_folder("out", tmp_path, OLD)
    replace, renamed = Path.replace, []

    def rename_some(path, target):
        if len(renamed) == num_renamed:
            raise KeyboardInterrupt
        renamed.append(target)
        replace(path, target)

    monkeypatch.setattr(Path, "replace", rename_some)
    with nullcontext() if num_renamed == len(NEW) else pytest.raises(KeyboardInterrupt):
        output_file.write_folder("out", tmp_path, NEW)
    assert "card" not in contents(tmp_path) or contents(tmp_path) == NEW
