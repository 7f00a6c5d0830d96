"""Makes the report of the results: report.md, report.json and report.png beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from learning.reporting import aggregates, table
from learning.reporting.comparison import compare
from learning.results import Record
from learning.tasks import Task

from sf.machine import extras
from sf.storage import output_file, text_files


def make(records: Sequence[Record], tasks: Mapping[str, Task], folder: Path) -> str:
    """Returns the text. Raises ValueError where a package is missing, or a file cannot be written."""
    aggregates.require()
    extras.require("plot", "matplotlib", purpose="the picture of the report")
    from learning.reporting import picture  # noqa: PLC0415  matplotlib is an extra

    comparison = compare(records, tasks)
    text = table.as_markdown(comparison)
    output_file.write("results", folder / "report.md", text.encode())
    data = text_files.dumps(table.as_data(comparison), indent=2) + "\n"
    output_file.write("results", folder / "report.json", data.encode())
    picture.draw(comparison, folder / "report.png")
    return text
