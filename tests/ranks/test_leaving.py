"""How a rank leaves the others at the end."""

import threading
import time
from datetime import timedelta

import pytest
import torch.distributed
from torch.distributed import HashStore

from sf.ranks import ranks as module
from sf.ranks.ranks import DistributedRanks


class StoreThatStandsStill:
    """As one whose process is stopped: it answers nothing."""

    def __init__(self):
        self.may_go_on = threading.Event()

    def set(self, key, value):
        self.may_go_on.wait()

    def wait(self, keys, timeout):
        self.may_go_on.wait()


@pytest.fixture
def ends(monkeypatch):
    """The second of two ranks with a store -> how it leaves: whether it closed its connections, and the seconds."""
    closed = []
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: closed.append(True))
    monkeypatch.setattr(module, "_LEAVES_WITHIN", timedelta(seconds=30))

    def end(store):
        closed.clear()
        began = time.monotonic()
        DistributedRanks(torch.device("cpu"), store).leave()
        return bool(closed), time.monotonic() - began

    return end


def test_a_rank_leaves_at_once_where_the_other_has_done_its_part_and_waits_for_no_store_that_answers_nothing(
    ends, monkeypatch
):
    store = HashStore()
    store.set("leaves/0", "")
    has_closed, seconds = ends(store)
    assert has_closed
    assert seconds < 15
    monkeypatch.setattr(module, "_LEAVES_WITHIN", timedelta(seconds=0.5))
    silent = StoreThatStandsStill()
    has_closed, seconds = ends(silent)
    assert not has_closed  # a thread of it is in there
    assert 0.4 < seconds < 30
    silent.may_go_on.set()
