"""Files of one JSON object a line, to which lines are only ever appended. A kill may tear the last one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sf.storage.no_links import append_whole, open_to_append

_BLOCK = 65_536  # bytes


def append(path: Path, lines: bytes, *, waits: bool = True) -> None:
    """Append whole lines, all or none, and wait until they are on the disk if it `waits`.

    What a kill left of a line is removed first. Raises OSError where that is not possible.
    """
    with open_to_append(path) as file:
        size = _whole_size(path)
        file.truncate(size)
        append_whole(file, lines)
        if waits:
            try:
                os.fsync(file.fileno())
            except OSError:
                file.truncate(size)
                raise


def whole_lines(path: Path) -> Iterator[bytes]:
    """All lines without their ends, one by one, but for one that a kill has torn. Raises FileNotFoundError."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def last_lines(path: Path, num_lines: int) -> list[bytes]:
    """The last lines without their ends, among them one that has no end yet, which is empty after a line end.

    Reads the end of the file only. Raises OSError.
    """
    with path.open("rb") as file:
        begin, text = file.seek(0, os.SEEK_END), b""
        while begin > 0 and text.count(b"\n") < num_lines:
            end, begin = begin, max(0, begin - _BLOCK)
            file.seek(begin)
            text = file.read(end - begin) + text
    return text.split(b"\n")[-num_lines:]


def _whole_size(path: Path) -> int:
    """The size of the file up to its last line end."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - _BLOCK)
            file.seek(begin)
            last = file.read(end - begin).rfind(b"\n")
            if last >= 0:
                return begin + last + 1
            end = begin
    return 0
