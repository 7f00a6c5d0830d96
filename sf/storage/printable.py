"""Text that may hold what cannot be encoded: paths and names need not be UTF-8."""

from __future__ import annotations


def printable(text: str) -> str:
    """What cannot be encoded, such as Python's stand-ins for bytes of a file name that are not UTF-8, as \\udcff."""
    return text.encode("utf-8", "backslashreplace").decode()
