"""The program's main module: what it is to the child processes, and how it ends.

Children import it again where it is a file. So a script may register environments and encoders at its top level, and
must start training below `if __name__ == "__main__":`. A notebook is no file, and what is registered there stays there.
A command does not wait for threads that an environment of the user has started and forgotten.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNGUARDED = 77  # exit status of a child in which the main module began to train
UNGUARDED_MESSAGE = (
    "the script trains whenever it is imported, and every process imports it again: put the call that trains below a "
    'line `if __name__ == "__main__":`'
)


def end_if_imported_again() -> None:
    """End this process where it is a child that imports the main module: the supervisor says why to whoever trains."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)


@contextmanager
def hidden_unless_a_file() -> Iterator[None]:
    """Children do not try to import a program that came from standard input while this is open."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or Path(path).exists():
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path


@contextmanager
def leaves_threads_behind(grace_s: float = 2.0) -> Iterator[None]:
    """Where the block ends by an exception, and a thread that began in it does not, end the process as that would.

    The interpreter would wait for the thread. It has `grace_s`, so what ends by itself does so in order.
    """
    before = set(threading.enumerate())
    try:
        yield
    except BaseException as error:
        give_up_at = time.monotonic() + grace_s
        begun = [t for t in threading.enumerate() if t not in before and not t.daemon]
        for thread in begun:
            thread.join(max(0.0, give_up_at - time.monotonic()))
        if any(thread.is_alive() for thread in begun):
            _end(error)
        raise


def _end(error: BaseException) -> None:
    """Print what the interpreter would print, and end with its status."""
    status = 1
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
    else:
        sys.excepthook(type(error), error, error.__traceback__)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nobody reads it
            stream.flush()
    os._exit(status)
