"""What the trainers of a run tell each other: a line a rank in the store of `torchrun`, which all read.

Each line has one writer, which writes it again every second. A line that stands still says that its rank has gone:
connections alone would not, where a machine or a network vanishes without a word.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from torch.distributed import Store

from sf.ranks.place import FINAL_FAILURE, USER_ERROR, Place

_WRITES_EVERY_S = 1.0
_FINAL = (USER_ERROR, FINAL_FAILURE)  # statuses: another start would end the same way


class Board:
    """One trainer alone: there is nobody to tell."""

    def post(self, **words: Any) -> None:
        """The own line has these words, too, from the next time on that it is written."""

    def lines(self) -> Mapping[int, Mapping[str, Any]]:
        """The latest line of each other rank that has been read."""
        return {}

    def host(self, rank: int) -> str:
        """The name of its machine."""
        return socket.gethostname()

    def silence(self) -> str | None:
        """A sentence about a rank that has not been heard of for too long; None where there is none."""
        return None

    def wait_for_all(self, word: str, patience_s: float) -> None:
        """Waits until each other rank has this word in its line, or has ended."""

    def final_status(self, patience_s: float) -> int | None:
        """Returns the exit status of another rank that would fail again, or None if no rank has said so.

        Waits until one has, or each has said why it fails, or has ended.
        """
        return None

    def close(self) -> None:
        """Say that this rank has ended."""


class StoreBoard(Board):
    """The lines of several ranks. A thread exchanges them: a store on a machine that has vanished does not answer."""

    def __init__(self, store: Store, place: Place, timeout_s: float) -> None:
        """store: of these ranks alone. timeout_s: for so long a line may stand still."""
        self._store = store
        self._place = place
        self._timeout_s = timeout_s
        self._own: dict[str, Any] = {"host": socket.gethostname(), "beat": 0, "has_ended": False}
        self._lock = threading.Lock()  # over the own line
        self._lines: dict[int, dict[str, Any]] = {}
        self._lines_change = threading.Condition()
        now = time.monotonic()
        self._exchanged_at = now
        self._changed_at = {rank: now for rank in range(place.size) if rank != place.rank}
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._exchange_again_and_again, name="board", daemon=True)
        self._thread.start()

    def post(self, **words: Any) -> None:
        with self._lock:
            self._own.update(words)

    def lines(self) -> Mapping[int, Mapping[str, Any]]:
        return self._lines

    def host(self, rank: int) -> str:
        return self._own["host"] if rank == self._place.rank else self._lines.get(rank, {}).get("host", "?")

    def silence(self) -> str | None:
        now = time.monotonic()
        if now - self._exchanged_at > self._timeout_s:
            return f"the store of torchrun has not answered for {now - self._exchanged_at:.0f} s (--rank_timeout_s)"
        for rank, changed_at in self._changed_at.items():
            line, where = self._lines.get(rank, {}), f"rank {rank} on {self.host(rank)}"
            if line.get("failure"):
                return f"{where} has failed: {line['failure']}"
            if now - changed_at > self._timeout_s and not line.get("has_ended", False):
                return f"{where} has not been heard of for {now - changed_at:.0f} s (--rank_timeout_s)"
        return None

    def wait_for_all(self, word: str, patience_s: float) -> None:
        with self._lines_change:
            self._lines_change.wait_for(lambda: self._all_have(word), patience_s)

    def final_status(self, patience_s: float) -> int | None:
        def final() -> int | None:
            return next((line["status"] for line in self._lines.values() if line.get("status") in _FINAL), None)

        with self._lines_change:
            self._lines_change.wait_for(lambda: final() is not None or self._all_have("failure"), patience_s)
            return final()

    def _all_have(self, word: str) -> bool:
        """Returns whether each other rank has this word in its line, or has ended."""
        lines = (self._lines.get(rank, {}) for rank in self._changed_at)
        return all(word in line or line.get("has_ended", False) for line in lines)

    def close(self) -> None:
        self.post(has_ended=True)
        self._is_closed.set()
        self._thread.join(2 * _WRITES_EVERY_S)

    def _exchange_again_and_again(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_closed.is_set()
            try:
                self._exchange()
                self._exchanged_at = time.monotonic()
            except RuntimeError:  # the store has gone, or does not answer: `silence` says so in time
                pass
            self._is_closed.wait(_WRITES_EVERY_S)

    def _exchange(self) -> None:
        with self._lock:
            self._own["beat"] += 1
            own = json.dumps(self._own)
        self._store.set(_key(self._place.rank), own)
        for rank in self._changed_at:
            if not self._store.check([_key(rank)]):
                continue
            line = json.loads(self._store.get(_key(rank)))
            if line["beat"] != self._lines.get(rank, {}).get("beat"):
                self._changed_at[rank] = time.monotonic()
            with self._lines_change:
                self._lines = {**self._lines, rank: line}
                self._lines_change.notify_all()


def _key(rank: int) -> str:
    return f"line/{rank}"
