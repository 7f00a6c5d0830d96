"""The report as a picture: a panel for each task, a line for each trainer. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from learning.aggregates import Estimate
from learning.comparison import Comparison, Row
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from sf.tools.report.style import INK, PALETTE, house_style, save

_COLUMNS = 3
_COUNT = EngFormatter(sep="")
_WIDTH, _HEIGHT, _OF_A_TRAINER = 4.2, 0.9, 0.25  # of a panel, in inches


def draw(comparison: Comparison, out: Path) -> None:
    """Raises ValueError where the file cannot be written."""
    rows = [row for row in comparison.rows if any(cell.stochastic for cell in row.trainers)]
    num_panels = len(rows) + len(comparison.overall)
    if not num_panels:
        return
    titles = list(dict.fromkeys(cell.title for row in rows for cell in row.trainers))
    colors = {title: PALETTE[idx % len(PALETTE)] for idx, title in enumerate(titles)}
    columns = min(_COLUMNS, num_panels)
    lines = math.ceil(num_panels / columns)
    with house_style():
        size = columns * _WIDTH, lines * (_HEIGHT + _OF_A_TRAINER * len(titles))
        figure = Figure(figsize=size, layout="constrained")
        panels = list(figure.subplots(lines, columns, squeeze=False).flat)
        for panel, row in zip(panels, rows, strict=False):
            _draw_task(panel, row, colors)
        for panel, overall in zip(panels[len(rows) :], comparison.overall, strict=False):
            _draw(panel, overall.normalised, {}, colors)
            panel.axvline(1.0, color=INK, linestyle="--", linewidth=0.8)
            panel.set(title=f"all {len(overall.tasks)} tasks that these have", xlabel="0: random, 1: good")
        for panel in panels[num_panels:]:
            panel.remove()
    save(figure, out)


def _draw_task(panel: Axes, row: Row, colors: Mapping[str, str]) -> None:
    estimates = {cell.title: cell.stochastic for cell in row.trainers if cell.stochastic}
    _draw(panel, estimates, {cell.title: cell.scores for cell in row.trainers}, colors)
    if row.at_least is not None:
        panel.axvline(row.at_least, color=INK, linestyle="--", linewidth=0.8)
    panel.set(title=row.task, xlabel=f"return after {_COUNT(row.frames)} frames")


def _draw(
    panel: Axes, estimates: Mapping[str, Estimate], scores: Mapping[str, tuple[float, ...]], colors: Mapping[str, str]
) -> None:
    """The interquartile mean as a point, its interval as a bar, the seeds as small points."""
    for height, (title, estimate) in enumerate(estimates.items()):
        color = colors[title]
        if estimate.low is not None and estimate.high is not None:
            panel.plot([estimate.low, estimate.high], [height] * 2, color=color, linewidth=6, alpha=0.35, linestyle="-")
        of_seeds = scores.get(title, ())
        panel.plot(of_seeds, [height] * len(of_seeds), linestyle="", marker=".", markersize=4, color=color)
        panel.plot([estimate.iqm], [height], linestyle="", marker="D", markersize=5, color=color)
    panel.set_yticks(range(len(estimates)), list(estimates))
    panel.set_ylim(len(estimates) - 0.5, -0.5)
