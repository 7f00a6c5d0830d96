"""Text with characters that cannot be encoded: paths and names need not be UTF-8, nor need standard output."""

from __future__ import annotations


def printable(text: str, encoding: str = "utf-8") -> str:
    """The text with such characters written out: Python's stand-in for the byte ff becomes \\udcff."""
    return text.encode(encoding, "backslashreplace").decode(encoding)
