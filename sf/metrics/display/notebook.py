"""The display in a notebook: one output area of the cell, in which each record replaces the one before."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

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
    """As HTML, and as text for a front end that knows no other."""
    console = Console(
        record=True, file=io.StringIO(), width=_WIDTH, force_jupyter=False, force_terminal=True, legacy_windows=False
    )
    for line in lines:
        console.print(Text(line))
    if panel is not None:
        console.print(panel)
    text = console.export_text(clear=False)
    return {"text/plain": text, "text/html": console.export_html(inline_styles=True, code_format=_HTML)}
