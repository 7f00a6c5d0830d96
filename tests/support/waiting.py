"""Waits of tests."""

import time


def has_message(queue, within_s):
    ends = time.monotonic() + within_s
    while not queue.has_messages():
        if time.monotonic() > ends:
            return False
        time.sleep(1e-4)
    return True
