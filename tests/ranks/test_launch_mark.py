"""How ranks that are started again know their own run from an earlier one."""

from __future__ import annotations

import pytest

from sf.ranks.launch_mark import LaunchMark
from sf.ranks.place import ALONE_HERE, Place

FIRST = Place(0, 2, 0, 2, is_by_torchrun=True)


def mark(folder, launch, place=FIRST):
    return LaunchMark(folder, place, {"TORCHELASTIC_RUN_ID": launch})


def test_a_launch_knows_its_own_mark_alone(tmp_path):
    folder = tmp_path / "ranks"
    assert not mark(folder, "this").is_there()
    mark(folder, "this").set()
    assert mark(folder, "this").is_there()
    assert not mark(folder, "another").is_there()


def test_only_the_first_rank_of_several_sets_it(tmp_path):
    for place in (Place(1, 2, 1, 2, is_by_torchrun=True), ALONE_HERE):
        mark(tmp_path, "this", place).set()
    assert not list(tmp_path.iterdir())


def test_a_launch_removes_no_mark_but_its_own(tmp_path):
    mark(tmp_path, "this").set()
    mark(tmp_path, "another").remove()
    assert mark(tmp_path, "this").is_there()
    mark(tmp_path, "this").remove()
    assert not mark(tmp_path, "this").is_there()


def test_it_is_set_once_the_disk_takes_it(tmp_path):
    in_the_way = tmp_path / "ranks"
    in_the_way.write_text("")
    own = mark(in_the_way, "this")
    own.set()
    in_the_way.unlink()
    own.set()
    assert own.is_there()


def test_a_link_in_its_place_is_refused(tmp_path):
    (tmp_path / "under_way").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="under_way is a link"):
        mark(tmp_path, "this").is_there()
