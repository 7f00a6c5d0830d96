"""Where tables and lines are printed. Rich alone would end the process with status 1 once nobody reads them."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import NoReturn

from rich.console import Console, RenderableType

from sf.storage.text_files import printable


class OutputConsole(Console):
    """Raises BrokenPipeError where its output has no reader any more, once: what is printed later is dropped."""

    def on_broken_pipe(self) -> NoReturn:
        self.quiet = True
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    @classmethod
    def of_width(cls, width: int) -> OutputConsole:
        """Returns one of this many columns where the output is no terminal."""
        console = cls()
        if not console.is_terminal:
            console.width = width
        return console

    def say(self, what: RenderableType) -> None:
        """A line as it is, or a table. Raises nothing: the work goes on where it cannot be written."""
        text = printable(what, self.encoding) if isinstance(what, str) else what
        with suppress(OSError, ValueError):
            self.print(text, highlight=False, markup=False, emoji=False)
