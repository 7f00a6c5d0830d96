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


def test_nothing_is_written_through_a_link_that_somebody_has_put_there(monkeypatch, tmp_path):
    monkeypatch.setattr(rendezvous, "connect", lambda place, is_parent: store_at(tmp_path / "store"))
    folder, theirs = tmp_path / "folder", tmp_path / "theirs"
    folder.mkdir()
    theirs.write_text("kept")
    (folder / "rendezvous").symlink_to(theirs)
    for place, said in ((folder, "rendezvous is a link"), (theirs, "--train_dir")):
        with pytest.raises(UsageError, match=said):
            meet(Place(), Config(), {}, place)
    assert theirs.read_text() == "kept"


def test_other_flags_than_those_of_the_first_rank_are_said(all_meet, tmp_path):
    configs = [Config(), Config().replace(num_workers=7, train_dir="elsewhere"), Config().replace(gamma=0.9)]
    met = all_meet(configs, [tmp_path] * SIZE)
    assert isinstance(met[2], UsageError)
    assert "gamma is 0.9 at rank 2, and 0.99 at rank 0" in str(met[2])
    # Nobody begins without it.
    assert [isinstance(met[rank], UsageError) for rank in (0, 1)] == [True, True]
    assert "rank 2" in str(met[0])


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


def test_all_ranks_know_how_far_the_newest_checkpoint_of_any_is_and_the_id_of_the_run(tmp_path):
    ids = {"one"}
    for number, (newest_id, last) in enumerate((("one", 100), (None, None), (None, None))):
        own = [SavedRun([None, 300]), SavedRun([200, None]), SavedRun([last, None], newest_id)]
        found = most_saved(tmp_path / f"store_{number}", own)
        assert [found[rank].env_steps for rank in range(SIZE)] == [[200, 300]] * SIZE
        (run_id,) = {found[rank].run_id for rank in range(SIZE)}
        assert (run_id in ids) == (newest_id is not None)  # a new run has one that no other has
        ids.add(run_id)
    assert rendezvous.most_saved(store_at(tmp_path / "store_0"), Place(), SavedRun([None])).env_steps == [None]


def test_different_runs_of_one_name_are_not_taken_for_one(tmp_path):
    own = [SavedRun([200], "one", "/d/x on a"), SavedRun([None]), SavedRun([900], "other", "/d/x on b")]
    found = most_saved(tmp_path / "store", own)
    for rank in range(SIZE):
        assert isinstance(found[rank], UsageError)
        assert all(place in str(found[rank]) for place in ("/d/x on a", "/d/x on b"))


def test_a_rank_that_does_not_come_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "_COME_WITHIN_S", 0.0)
    with pytest.raises(UsageError, match="rank 1"):
        name_of_rendezvous(store_at(tmp_path / "store"), 0, SIZE)
