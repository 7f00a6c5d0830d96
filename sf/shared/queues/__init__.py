"""FIFO queues between processes that carry indices, and nothing else.

The data that an index stands for lies in shared memory. Every queue has one reader. `--queues` chooses their kind: a
module here that makes `Queues`, and its line in `make_queues`.
"""

from __future__ import annotations

from typing import Literal

from sf.shared.queues.faster_fifo import FasterFifos
from sf.shared.queues.index_queue import IndexQueue, LockedQueueError, Queues, StopRequested
from sf.shared.queues.local import LocalQueue, LocalQueues
from sf.shared.queues.pipes import PIPES, PipeQueue

__all__ = [
    "PIPES",
    "IndexQueue",
    "LocalQueue",
    "LocalQueues",
    "LockedQueueError",
    "PipeQueue",
    "Queues",
    "StopRequested",
    "make_queues",
]


def make_queues(kind: Literal["pipes", "faster_fifo"]) -> Queues:
    """What makes the queues of a run. Raises ValueError where the package for them is not installed."""
    return PIPES if kind == "pipes" else FasterFifos()
