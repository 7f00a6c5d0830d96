"""Waits of tests."""

import threading
import time
from concurrent.futures import Future


def eventually(condition, within_s=20.0):
    ends = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > ends:
            return False
        time.sleep(1e-4)
    return True


def has_message(queue, within_s):
    return eventually(queue.has_messages, within_s)


def in_time(work, within_s):
    """What `work` returns or raises in a thread of its own; raises TimeoutError where it does not end."""
    outcome = Future()

    def run():
        try:
            outcome.set_result(work())
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(within_s)
