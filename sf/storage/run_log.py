"""What a run says, in run.log: each line and traceback with the time, appended over all its starts.

A full disk costs lines of the log, and nothing else. Nothing is said of it: the writer of metrics does.
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

from sf.storage.no_links import open_to_append


class RunLog:
    """Opens the file for every line, as the writer of metrics does: it may be moved or removed meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    def write(self, text: str) -> None:
        """Of several lines, such as a traceback, the first has the time. Any thread may call it."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode(errors="backslashreplace")
        # A directory that was removed is not made anew here: without config.yaml it would be no run.
        with suppress(OSError), open_to_append(self._path) as file:
            file.write(line)

    @contextmanager
    def of_process(self) -> Iterator[None]:
        """Between these two lines lies one start of the run. What ends it by an exception is written down in full."""
        self.write(f"process {os.getpid()} begins: {shlex.join(sys.argv)}")
        try:
            yield
        except BaseException:
            self.write(f"process {os.getpid()} ends by an exception\n{traceback.format_exc().rstrip()}")
            raise
        self.write(f"process {os.getpid()} ends")
