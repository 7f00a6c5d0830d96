"""The program's main module: what it is to the child processes, which import it again where it is a file.

So a script may register environments and encoders at its top level, and must start training below
`if __name__ == "__main__":`. A notebook is no file, and what is registered there stays there.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
