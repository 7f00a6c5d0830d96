"""Ranks that find each other where earlier ones have left their words."""

from __future__ import annotations

import threading
import uuid

import torch.distributed

from sf.ranks.meeting import meet

SIZE = 3


def met(path):
    """What each rank reads of what the first one has written, in the part of the store that they share."""
    read = {}

    def come(rank):
        store = meet(torch.distributed.FileStore(str(path), -1), rank, SIZE)
        if rank == 0:
            store.set("word", uuid.uuid4().hex)
        read[rank] = store.get("word")

    threads = [threading.Thread(target=come, args=(rank,), daemon=True) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert read.keys() == set(range(SIZE))
    return read


def test_later_ranks_never_read_what_earlier_ones_have_left(tmp_path):
    path = tmp_path / "store"
    words = []
    for _ in range(3):
        read = met(path)
        assert len(set(read.values())) == 1
        words.append(read[0])
        # One of them dies before the first answers it.
        torch.distributed.FileStore(str(path), -1).set("sf/came/2", uuid.uuid4().hex)
    assert len(set(words)) == 3
