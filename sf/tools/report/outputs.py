"""Checks the files of --json and --png before the work, writes them after it, and says what they leave out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sf.storage import output_file, text_files
from sf.storage.text_files import plain
from sf.system.machine import extras


def warn(line: str) -> None:
    """Says on standard error what is left out of a picture or a page."""
    print(plain(line), file=sys.stderr)


def require_outputs(json: Path | None, png: Path | None = None) -> None:
    """Raises ValueError if a file could not be written later. None: it is not wanted."""
    if png is not None:
        extras.require("plot", "matplotlib", purpose="--png")
        from sf.tools.report import style  # noqa: PLC0415  matplotlib is an extra

        style.require_format(png, "png")
    for flag, path in (("json", json), ("png", png)):
        if path is not None:
            output_file.require_writable(flag, path)


def write_json(json: Path | None, value: Any) -> None:
    """Raises ValueError if the file cannot be written. None: it is not wanted."""
    if json is not None:
        output_file.write("json", json, (text_files.dumps(value, indent=2) + "\n").encode())
