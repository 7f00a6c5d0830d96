"""run.log: each message and traceback of a run with its time, appended over all starts.

A full disk costs lines of the log and nothing else. The writer of metrics reports it, so this module does not.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sf.storage.text_files import open_to_append


class RunLog:
    """Opens the file for every line, as the writer of metrics does: somebody may move or remove it meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    def write(self, text: str) -> None:
        """Write one text, such as a message or a traceback; its first line gets the time. Any thread may call it."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode(errors="backslashreplace")
        # A directory that was removed is not made again here: without config.yaml it would be no run.
        with suppress(OSError), open_to_append(self._path) as file:
            file.write(line)

    @contextmanager
    def of_process(self) -> Iterator[None]:
        """One start of the run, between two lines. An exception that ends it is logged with its traceback."""
        self.write(f"process {os.getpid()} begins: {shlex.join(sys.argv)}")
        try:
            yield
        except BaseException:
            self.write(f"process {os.getpid()} ends by an exception\n{traceback.format_exc().rstrip()}")
            raise
        self.write(f"process {os.getpid()} ends")
