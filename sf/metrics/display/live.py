"""The display of a running run: a live panel on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from sf.metrics.display import panel
from sf.metrics.display.console import OutputConsole
from sf.metrics.display.panel import Curve, Target
from sf.metrics.progress import Outlook
from sf.metrics.readable import clock, number, rate
from sf.storage.text_files import printable

_WIDTH = 100  # columns: about what the cell of a notebook shows
_HTML = (
    "<pre style=\"white-space:pre;overflow-x:auto;line-height:normal;font-family:Menlo,'DejaVu Sans Mono',consolas,"
    "'Courier New',monospace\">{code}</pre>"
)


class NotebookArea:
    """Appears in the cell that runs when it is first drawn. Only for a process that is the kernel of a notebook."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, lines: Iterable[str], panel: RenderableType | None) -> None:
        """Show these lines, and below them the panel, if any, in place of what is there."""
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415  a kernel's

        content = _both_forms(lines, panel)
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def _both_forms(lines: Iterable[str], panel: RenderableType | None) -> dict[str, str]:
    """Renders them as HTML, and as text for a front end that knows no other."""
    console = Console(
        record=True, file=io.StringIO(), width=_WIDTH, force_jupyter=False, force_terminal=True, legacy_windows=False
    )
    for line in lines:
        console.print(Text(line))
    if panel is not None:
        console.print(panel)
    text = console.export_text(clear=False)
    return {"text/plain": text, "text/html": console.export_html(inline_styles=True, code_format=_HTML)}


_NUM_REPEATED = 50  # lines that are printed again after a resize, or stay in a notebook
_OF_THE_OUTPUT = (OSError, ValueError)  # the disk is full, nobody reads, it is closed, it lacks a character


class Display:
    """Shows records as they come. target: the end of the run. log: gets every line, also where a panel shows it."""

    def __init__(
        self,
        title: str,
        target: Target,
        console: Console | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._target = target
        self._log = log
        # sys.stdout is None while the parent starts a process, and threads may have messages then.
        self.console = console or OutputConsole(file=sys.stdout)
        self._title = self._printable(title)
        if not self.console.is_interactive:
            self.console.soft_wrap = True  # a record stays one line
        self._live: Live | None = None
        self._area = NotebookArea() if self.console.is_jupyter else None
        self._panel: RenderableType | None = None
        self._width = self.console.width
        self._latest_lines: deque[str] = deque(maxlen=_NUM_REPEATED)
        self._curve = Curve()

    def __enter__(self) -> Display:
        if self.console.is_interactive:
            self._live = Live(console=self.console, auto_refresh=False, transient=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with suppress(*_OF_THE_OUTPUT):
                self._live.stop()

    def say(self, line: str) -> None:
        """One event, one line. Never ends the run, even where the terminal is gone or the disk is full."""
        self._log(line)
        self._latest_lines.append(line)
        if self._area is None:
            self._print(line)
        else:
            self._draw(self._area)

    def show(self, record: dict[str, Any], outlook: Outlook) -> None:
        if outlook.has_enough_episodes:
            self._curve.add(record["mean_return"])
        line = self._line(record, outlook)
        self._log(line)
        if self._live is None and self._area is None:
            self._print(line)
            return
        self._panel = panel.panel(self._title, record, outlook, self._target, self._curve)
        if self._area is not None:
            self._draw(self._area)
        elif self._live is not None:
            with suppress(*_OF_THE_OUTPUT):
                if self.console.width != self._width:
                    self._redraw()
                self._live.update(self._panel, refresh=True)

    def _print(self, line: str) -> None:
        with suppress(*_OF_THE_OUTPUT):
            self.console.print(self._printable(line), highlight=False, markup=False, emoji=False)

    def _draw(self, area: NotebookArea) -> None:
        with suppress(*_OF_THE_OUTPUT):
            area.draw(map(self._printable, self._latest_lines), self._panel)

    def _printable(self, text: str) -> str:
        return printable(text, self.console.encoding)

    def _redraw(self) -> None:
        """A narrower terminal has broken the lines of the old panel, and how many there are now is unknown."""
        self._width = self.console.width
        self.console.clear()
        for line in self._latest_lines:
            self._print(line)

    def _line(self, record: dict[str, Any], outlook: Outlook) -> str:
        starting = f"{outlook.env_start}; " if outlook.env_start else ""
        return (
            f"{clock(record['seconds'])} {starting}frames {record['env_frames']:,} "
            f"fps {rate(outlook.frames_per_second)} return {panel.mean_return(record, outlook)} "
            f"episode {number(record['mean_episode_steps'])} steps "
            f"lag {number(record.get('train/lag_mean'))} eta {clock(self._target.seconds_left(record, outlook))} "
            f"bottleneck {outlook.bottleneck}"
        )
