"""What a run has left in /dev/shm, though other tests start Doom engines meanwhile."""

import os
import time

PATIENCE_S = 20.0


def in_shared_memory():
    return set(os.listdir("/dev/shm"))


def left_in_shared_memory(before):
    """Names that were not there before, and stay: an engine that starts has some, too, and removes them."""
    left = in_shared_memory() - before
    give_up_at = time.monotonic() + PATIENCE_S
    while left and time.monotonic() < give_up_at:
        os.sched_yield()
        left &= in_shared_memory()
    return left
