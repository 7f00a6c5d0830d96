"""Names from the files of a run, as a picture, a page or a terminal can show them."""

from __future__ import annotations

import re

from sf.storage.printable import printable

# Controls, of which one could move the cursor of a terminal or clear it, ends of lines, and what XML does not allow.
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")


def plain(text: str) -> str:
    """The text in one line, with characters that cannot be shown written out: escape becomes \\x1b."""
    return _NOT_SHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), printable(text))
