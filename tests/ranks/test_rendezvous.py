"""Ranks that find each other where earlier ones have left their words."""

from __future__ import annotations

import socket
import threading
import uuid
from datetime import timedelta

import pytest
import torch.distributed

from sf.config import Config
from sf.envs.errors import UsageError
from sf.ranks import rendezvous
from sf.ranks.place import Place
from sf.ranks.rendezvous import SavedRun, meet, name_of_rendezvous

SIZE = 3


def by_rank(come):
    """What `come(rank)` returns or raises for each rank, all at the same time."""
    came = {}

    def note(rank):
        try:
            came[rank] = come(rank)
        except ValueError as error:
            came[rank] = error

    threads = [threading.Thread(target=note, args=(rank,), daemon=True) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert came.keys() == set(range(SIZE))
    return came


def store_at(path):
    return torch.distributed.FileStore(str(path), -1)


@pytest.fixture
def all_meet(tmp_path, monkeypatch):
    """A function from the configuration and the folder of each rank to its rendezvous."""
    monkeypatch.setattr(rendezvous, "connect", lambda place, is_parent: store_at(tmp_path / "store"))
    monkeypatch.setattr(rendezvous, "_PATIENCE", timedelta(seconds=1))

    def of(configs, folders):
        return by_rank(
            lambda rank: meet(Place(rank, SIZE, rank, SIZE), configs[rank], {"device": "cpu"}, folders[rank])
        )

    return of


def test_later_ranks_never_read_what_earlier_ones_have_left(tmp_path):
    path = tmp_path / "store"
    words = []
    for _ in range(3):
        read = by_rank(lambda rank: name_of_rendezvous(store_at(path), rank, SIZE))
        assert len(set(read.values())) == 1
        words.append(read[0])
        # One of them dies before the first answers it.
        torch.distributed.FileStore(str(path), -1).set("sf/came/2", uuid.uuid4().hex)
    assert len(set(words)) == 3


def test_a_rank_knows_whether_it_sees_the_disk_of_the_first(all_meet, tmp_path):
    folders = [tmp_path / "shared", tmp_path / "shared", tmp_path / "own"]
    met = all_meet([Config()] * SIZE, folders)
    assert [met[rank].sees_disk_of_first for rank in range(SIZE)] == [True, True, False]
    places = [Place(rank, SIZE, 0, 1).after(met[rank].name, met[rank].sees_disk_of_first) for rank in range(SIZE)]
    assert [place.saves for place in places] == [True, False, True]
    assert len({place.rendezvous for place in places}) == 1


@pytest.fixture
def first_meets(tmp_path, monkeypatch):
    """Has the only rank meet itself, with this folder."""
    monkeypatch.setattr(rendezvous, "connect", lambda place, is_parent: store_at(tmp_path / "store"))
    return lambda folder: meet(Place(), Config(), {}, folder)


def test_nothing_is_written_through_a_link_that_somebody_has_put_there(first_meets, tmp_path):
    folder, theirs = tmp_path / "folder", tmp_path / "theirs"
    folder.mkdir()
    theirs.write_text("kept")
    (folder / "rendezvous").symlink_to(theirs)
    with pytest.raises(UsageError, match="rendezvous is a link, and"):
        first_meets(folder)
    assert theirs.read_text() == "kept"


def test_a_folder_that_cannot_be_written_is_one_sentence(first_meets, tmp_path):
    (tmp_path / "folder").write_text("")
    with pytest.raises(UsageError, match="name another --train_dir"):
        first_meets(tmp_path / "folder")


def test_other_flags_than_those_of_the_first_rank_are_said(all_meet, tmp_path):
    configs = [Config(), Config().replace(num_workers=7, train_dir="elsewhere"), Config().replace(gamma=0.9)]
    met = all_meet(configs, [tmp_path] * SIZE)
    assert isinstance(met[2], UsageError)
    assert str(met[2]) == "gamma is 0.9 at rank 2, and 0.99 at rank 0: give all ranks the same flags"
    # Nobody begins without it.
    assert [isinstance(met[rank], UsageError) for rank in (0, 1)] == [True, True]
    assert "rank 2 has not come" in str(met[0])


def test_the_parent_of_the_first_rank_is_the_host_of_a_store_where_torchrun_has_none(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    first, second = (Place(rank, 2, 0, 1) for rank in range(2))
    host = rendezvous.connect(first, is_parent=True)
    rendezvous.connect(second, is_parent=True).set("word", "of the second")
    assert rendezvous.connect(first).get("word") == b"of the second"  # its learner's
    assert host.get("word") == b"of the second"


def most_saved(path, own):
    """What each rank finds, or raises. own: what it has, by rank."""
    return by_rank(lambda rank: rendezvous.most_saved(store_at(path), Place(rank, SIZE), own[rank]))


def test_all_ranks_know_how_far_the_newest_checkpoint_of_any_is(tmp_path):
    own = [SavedRun([None, 300]), SavedRun([200, None]), SavedRun([100, None])]
    found = most_saved(tmp_path / "store", own)
    assert [found[rank].env_steps for rank in range(SIZE)] == [[200, 300]] * SIZE
    assert rendezvous.most_saved(store_at(tmp_path / "store"), Place(), SavedRun([None])).env_steps == [None]


def test_all_ranks_take_over_the_id_of_the_run_that_any_has(tmp_path):
    found = most_saved(tmp_path / "store", [SavedRun([None]), SavedRun([200]), SavedRun([100], "one")])
    assert [found[rank].run_id for rank in range(SIZE)] == ["one"] * SIZE


def test_a_new_run_has_an_id_that_no_other_has(tmp_path):
    ids = set()
    for name in ("once", "again"):
        found = most_saved(tmp_path / name, [SavedRun([None])] * SIZE)
        assert len({found[rank].run_id for rank in range(SIZE)}) == 1
        ids.add(found[0].run_id)
    assert len(ids) == 2


def test_different_runs_of_one_name_are_not_taken_for_one(tmp_path):
    own = [SavedRun([200], "one", "/d/x on a"), SavedRun([None]), SavedRun([900], "other", "/d/x on b")]
    found = most_saved(tmp_path / "store", own)
    assert {str(found[rank]) for rank in range(SIZE)} == {
        "/d/x on b of rank 2 holds another run than /d/x on a of rank 0: move the one away that is not to be "
        "continued, or name another --experiment"
    }


def test_a_rank_that_does_not_come_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "_COME_WITHIN_S", 0.0)
    with pytest.raises(UsageError, match="rank 1 has not come within 0 s"):
        name_of_rendezvous(store_at(tmp_path / "store"), 0, SIZE)
