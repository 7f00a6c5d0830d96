"""Text with characters that cannot be encoded: paths and names need not be UTF-8."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with such characters written out: Python's stand-in for the byte ff becomes \\udcff."""
    return text.encode("utf-8", "backslashreplace").decode()
