"""Text with characters that cannot be encoded or shown: paths and names need not be UTF-8, nor need standard output."""

from __future__ import annotations

import re

# Controls, of which one could move the cursor of a terminal or clear it, ends of lines, and what XML does not allow.
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")


def printable(text: str, encoding: str = "utf-8") -> str:
    """The text with such characters written out: Python's stand-in for the byte ff becomes \\udcff."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def plain(text: str) -> str:
    """The text in one line, with characters that cannot be shown written out: escape becomes \\x1b."""
    return _NOT_SHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), printable(text))
