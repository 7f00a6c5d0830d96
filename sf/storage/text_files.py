"""Text files: printable text, JSON that every parser reads, lines that are only appended, and no writing through links.

NaN and infinity become null: JSON has no word for them, though Python writes some. Bytes of a text that are not UTF-8,
such as in the name of a file, are written as \\udcff. A kill may tear the last line of a file. A link in the place of
a file could have anything written, so none is followed.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sf.system.portable import O_NOFOLLOW

# Controls, of which one could move the cursor of a terminal or clear it, ends of lines, and what XML does not allow.
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_BLOCK = 65_536  # bytes that are read at a time


def printable(text: str, encoding: str = "utf-8") -> str:
    """The text with such characters written out: Python's stand-in for the byte ff becomes \\udcff."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def plain(text: str) -> str:
    """The text in one line, with characters that cannot be shown written out: escape becomes \\x1b."""
    return _NOT_SHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), printable(text))


def dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_finite(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, str):
        return printable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def open_to_append(path: Path) -> BinaryIO:
    """Unbuffered. Raises OSError, also where it is a link."""
    return open(path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags | O_NOFOLLOW, 0o666))


def append_whole(file: BinaryIO, data: bytes) -> None:
    """Append all of `data` to a file of `open_to_append`, or nothing. Raises OSError."""
    size = os.fstat(file.fileno()).st_size
    try:
        while data:
            data = data[file.write(data) :]  # a disk that gets full takes a part first
    except OSError:
        file.truncate(size)
        raise


def require_file(path: Path) -> None:
    """Raises ValueError where it is a link. It need not exist."""
    if path.is_symlink():
        raise ValueError(f"{path} is a link, and is not written through: remove the link")


def require_none(directory: Path) -> None:
    """Raises ValueError where a file in the directory is a link to a file. The directory need not exist."""
    if directory.is_dir():
        for path in directory.iterdir():
            if path.is_symlink() and not path.is_dir():
                raise ValueError(
                    f"{path} is a link, and a run does not write through links: remove it, or name another --experiment"
                )


def append(path: Path, lines: bytes, *, waits: bool = True) -> None:
    """Append lines, all or none, behind the last whole one, and wait for the disk if it `waits`. Raises OSError."""
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
