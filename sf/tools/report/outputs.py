"""Checks the files of --json and --png before the work, and writes them after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sf.storage import output_file, text_files
from sf.system.machine import extras


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
