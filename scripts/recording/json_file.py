"""The JSON file that a script writes its result to, too, where `--json` names one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sf.storage import output_file, text_files
from sf.tools.commands.ends import fail


def require_writable(path: Path | None, *, is_new: bool = False) -> None:
    """Before the work. Where the file cannot be written, the process ends with one sentence and status 2.

    is_new: also where the file has a result, which a part of the new one would replace.
    """
    if path is None:
        return
    try:
        output_file.require_writable("json", path)
    except ValueError as error:
        fail(str(error))
    if is_new and path.is_file() and path.stat().st_size > 0:
        fail(f"{path} has an earlier result: name another --json, or remove it")


def write(path: Path | None, result: Any, indent: int | None = 1) -> None:
    """Readers see the earlier result or this one, whole. Ends the process as `require_writable`."""
    if path is None:
        return
    try:
        output_file.write("json", path, f"{text_files.dumps(result, indent=indent)}\n".encode())
    except ValueError as error:
        fail(str(error))
