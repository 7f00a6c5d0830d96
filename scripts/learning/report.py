"""The report of the results: report.md, report.json and report.png beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from learning.aggregates import shown
from learning.comparison import Cell, Comparison, Overall, Row, compare
from learning.results import Record
from learning.tasks import Task
from recording.markdown_table import markdown_table

from sf.storage import output_file, text_files
from sf.system.machine import extras

HEADER = (
    "task", "frames", "at least", "trainer", "seeds", "sampled actions", "deterministic", "in training at the score",
    "reached",
)  # fmt: skip

NOTES = """\
Scores are mean raw returns of episodes that training has not seen: the interquartile mean over seeds, with its 95 %
interval by Student's t and the standard error of a stratified bootstrap. With fewer than four seeds this is the mean.
Where all seeds have the same score no interval is known. "Reached" is about the score with sampled actions. "In
training at the score" is when the mean return of the last 100 episodes of training first was the score: the median of
the seeds that came to it. A star marks the score of a trainer that was not evaluated: the last 100 episodes of
training."""


def as_markdown(comparison: Comparison) -> str:
    cells = [_cells(row, cell) for row in comparison.rows for cell in row.trainers]
    parts = [markdown_table(HEADER, cells), NOTES]
    if comparison.num_other_settings:
        parts.append(f"{comparison.num_other_settings} results with other settings are left out.")
    return "\n\n".join([*parts, *map(_overall, comparison.overall)]) + "\n"


def _cells(row: Row, cell: Cell) -> list[str]:
    at_least = "-" if row.at_least is None else f"{row.at_least:g}"
    seeds = f"{len(cell.scores)}" + (f" ({cell.num_failed} failed)" if cell.num_failed else "")
    return [
        *((row.task, f"{row.frames:,}", at_least) if cell is row.trainers[0] else ("", "", "")),
        _title(cell),
        seeds,
        "-" if cell.stochastic is None else f"{cell.stochastic}{'*' if cell.is_of_training else ''}",
        "-" if cell.deterministic is None else shown(cell.deterministic.iqm),
        _to_score(cell),
        {None: "-", True: "yes", False: "no"}[cell.has_reached],
    ]


def _title(cell: Cell) -> str:
    """With the commits that it does not name."""
    commits = [commit for commit in cell.commits if commit not in cell.title]
    return f"{cell.title} ({', '.join(commits)})" if commits else cell.title


def _to_score(cell: Cell) -> str:
    if cell.frames_to_score is None or cell.seconds_to_score is None:
        return "-"
    some = f" ({cell.num_to_score} of {len(cell.scores)})" if cell.num_to_score < len(cell.scores) else ""
    return f"{cell.frames_to_score:,.0f} frames, {cell.seconds_to_score:,.0f} s{some}"


def _overall(overall: Overall) -> str:
    seeds = "1 seed" if overall.num_seeds == 1 else f"{overall.num_seeds} seeds"
    what = f"Over {len(overall.tasks)} tasks, {seeds} each, 0 is random and 1 is good: {', '.join(overall.tasks)}."
    rows = [[title, str(estimate)] for title, estimate in overall.normalised.items()]
    return f"{what}\n\n{markdown_table(('trainer', 'normalised score'), rows)}"


def make(records: Sequence[Record], tasks: Mapping[str, Task], folder: Path) -> str:
    """Returns the text. Raises ValueError where a package is missing, or a file cannot be written."""
    extras.require("bench-learning", "scipy", purpose="the report")
    extras.require("plot", "matplotlib", purpose="the picture of the report")
    from learning import picture  # noqa: PLC0415  matplotlib is an extra

    comparison = compare(records, tasks)
    text = as_markdown(comparison)
    output_file.write("results", folder / "report.md", text.encode())
    data = text_files.dumps(asdict(comparison), indent=2) + "\n"
    output_file.write("results", folder / "report.json", data.encode())
    picture.draw(comparison, folder / "report.png")
    return text
