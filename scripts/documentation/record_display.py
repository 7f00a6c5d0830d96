"""A picture of the display of a real run: docs/images/display.svg, as the README and docs/watching.md show it.

    python scripts/documentation/record_display.py --env doom_battle --num_envs_per_worker 16

takes all flags of sf-train, trains for 90 seconds in a folder that it removes, and keeps the last panel. Run it on
a machine that does nothing else: the picture shows a speed.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console, RenderableType
from rich.terminal_theme import MONOKAI
from rich.theme import Theme

import sf.metrics.display.live
from sf.metrics.display import panel
from sf.run.trainer import train
from sf.tools.commands import cli

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURE = ROOT / "docs" / "images" / "display.svg"
SECONDS = 90.0
_WIDTH = 104  # in characters
_FETCHED_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def last_panel(arguments: list[str], seconds: float = SECONDS) -> RenderableType:
    """What the display showed last."""
    shown: list[RenderableType] = []

    def keep(*args: Any) -> RenderableType:
        shown.append(panel_of(*args))
        return shown[-1]

    config = cli.parse(arguments)
    panel_of = panel.panel
    terminal = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(panel, "panel", keep),
        mock.patch.object(sf.metrics.display.live, "Console", return_value=terminal),
    ):
        os.chdir(folder)  # so the panel names train_dir, and no folder of this machine
        train(config, on_record=lambda record: record["seconds"] >= seconds)
        os.chdir(ROOT)
    return shown[-1]


def picture(shown: RenderableType, title: str) -> str:
    """As SVG, in fonts of the viewer: it fetches none."""
    console = Console(file=io.StringIO(), record=True, width=_WIDTH, force_terminal=True, theme=Theme())
    console.print(shown)
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id="display")
    return _FETCHED_FONTS.sub("", svg).replace("Fira Code", "monospace") + "\n"


if __name__ == "__main__":
    arguments = sys.argv[1:]
    PICTURE.write_text(picture(last_panel(arguments), " ".join(["sf-train", *arguments])))
