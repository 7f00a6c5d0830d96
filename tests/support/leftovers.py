"""What a run has left in /dev/shm, though other tests start Doom engines meanwhile."""

import os

from waiting import eventually


def in_shared_memory():
    return set(os.listdir("/dev/shm"))


def left_in_shared_memory(before):
    """Names that were not there before, and stay: an engine that starts has some, too, and removes them."""
    left = in_shared_memory() - before
    eventually(lambda: not left.intersection_update(in_shared_memory()) and not left)
    return left
