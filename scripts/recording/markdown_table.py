"""A table in Markdown, as the scripts print it and the pages have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns the lines of the table, without an end of the last one."""
    first, *others = (f"| {' | '.join(row)} |" for row in (header, *rows))
    return "\n".join([first, "|---" * len(header) + "|", *others])
