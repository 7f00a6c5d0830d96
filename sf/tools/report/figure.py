"""The picture of learning curves: a panel for each environment and metric, a line for each group of runs."""

from __future__ import annotations

import difflib
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sf.metrics.readable import four_digits
from sf.storage.text_files import plain
from sf.tools.report.curves import CONFIDENCE, PLUS_MINUS, Band, Curve, band, curve
from sf.tools.report.groups import group
from sf.tools.report.runs import Run
from sf.tools.report.style import MOST_STYLES, house_style, tidy_numbers, x_unit

_COLUMNS = 3
_WIDTH, _HEIGHT = 4.2, 3.0  # of a panel, in inches
_INSIDE = 2.2  # of that height, what is within its axes: the layout divides heights by that
_ROW_HEIGHT = 0.16  # of a line of text in a legend or the caption, in inches
_LABEL_WIDTH = 40  # characters; longer labels, or more lines than these, go below the panel
_LINES_INSIDE = 6
_PEAKS = 0.05  # the share of values that are rare enough to be cut off, above and below
_POINT = 1 / 72  # inches
_TEXT, _GAP = 10.6 * _POINT, 4.0 * _POINT  # of a legend: a line of text, and what is between two labels, in inches
_HANDLE, _LETTER = 0.55, 0.07  # widths in a legend, in inches: the piece of a line with its space, and a character
_LEGEND_WIDTH = 3.6  # below a panel, in inches


@dataclass(frozen=True)
class Line:
    """One line of a panel, with the single runs behind it."""

    label: str
    band: Band
    runs: tuple[Curve, ...]

    @property
    def num_shared(self) -> int:
        """Points of the axis that all runs reach; none where one ends before another begins."""
        return int((self.band.num_runs == len(self.runs)).sum())

    @property
    def last_shared(self) -> int:
        """The last of them, else the first point of the axis."""
        return max(self.num_shared - 1, 0)


@dataclass(frozen=True)
class _Legend:
    """The labels of a panel's lines, and where they stand. Without labels there is none."""

    labels: tuple[str, ...]  # each may be several lines of text
    columns: int = 1
    height_below: float = 0.0  # inches; 0: it stands inside the panel

    @classmethod
    def of(cls, panel: Panel) -> _Legend:
        wrapped = [_wrapped(line.label) for line in panel.lines]
        if not any(wrapped) or len(wrapped) > MOST_STYLES:
            return cls(())
        labels = tuple("\n".join(rows) for rows in wrapped)
        if max(map(len, wrapped)) == 1 and len(wrapped) <= _LINES_INSIDE:
            return cls(labels)
        width = _HANDLE + _LETTER * max(len(row) for rows in wrapped for row in rows)
        columns = min(len(labels), max(1, int(_LEGEND_WIDTH / width)))
        per_column = math.ceil(len(labels) / columns)
        heights = [_TEXT * len(rows) + _GAP for rows in wrapped]
        highest = max(sum(heights[start : start + per_column]) for start in range(0, len(heights), per_column))
        return cls(labels, columns, highest + 4 * _GAP)

    def draw(self, axis: Axes, lines: Sequence[Line2D], **place: Any) -> None:
        legend = axis.legend(lines, [str(idx) for idx in range(len(lines))], ncols=self.columns, **place)
        for text, label in zip(legend.get_texts(), self.labels, strict=True):
            text.set_text(label)  # as an argument above, a label that begins with _ would be left out
        legend.set_in_layout(False)  # there is room for it


@dataclass(frozen=True)
class Panel:
    """All lines of one metric in one environment."""

    env: str
    y: str
    lines: tuple[Line, ...]

    @property
    def end(self) -> float:
        return max(line.band.x[-1] for line in self.lines)


def panels(runs: Sequence[Run], x: str, ys: Sequence[str], by: Sequence[str], smooth: float) -> list[Panel]:
    """Returns the panels to draw.

    x: the metric of the horizontal axis. ys: metrics or patterns; each metric that matches is a line. by: see
    `sf.tools.report.groups`. smooth: the window of the running mean, as a share of the longest curve of the panel. A
    run with fewer than two values of a metric has no part in its line. Raises ValueError where a metric has no line at
    all.
    """
    drawn = []
    for y in ys:
        by_env: dict[str, list[Run]] = {}
        for run in runs:
            by_env.setdefault(plain(run.flags["env"]), []).append(run)
        of_this = [_panel(env, members, x, y, by, smooth) for env, members in by_env.items()]
        if not any(panel.lines for panel in of_this):
            raise ValueError(f"y is {y}, and no run has two records with it and {x}: {_hint(runs, x, y)}")
        drawn += [panel for panel in of_this if panel.lines]
    return drawn


def draw(drawn: Sequence[Panel], x: str, smooth: float, show_runs: bool = False) -> Figure:
    """show_runs: draw each run as a thin line, too."""
    columns = min(_COLUMNS, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    caption = textwrap.wrap(_caption(drawn, smooth), int(_WIDTH * columns * 17))  # characters of this size an inch
    legends = [_Legend.of(panel) for panel in drawn]
    below = [max(legend.height_below for legend in legends[row * columns : (row + 1) * columns]) for row in range(rows)]
    heights = [height for legend in below for height in (_INSIDE, legend) if height > 0]
    with house_style():
        size = (_WIDTH * columns, _HEIGHT * rows + sum(below) + _ROW_HEIGHT * len(caption))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        places = [row + sum(legend > 0 for legend in below[:row]) for row in range(rows)]  # of its panels in the grid
        axes = [figure.add_subplot(grid[places[idx // columns], idx % columns]) for idx in range(len(drawn))]
        for idx, (axis, panel, legend) in enumerate(zip(axes, drawn, legends, strict=True)):
            lines = _draw_panel(axis, panel, x, show_runs)
            if legend.height_below:
                own = figure.add_subplot(grid[places[idx // columns] + 1, idx % columns])
                own.set_axis_off()
                legend.draw(own, lines, loc="upper center", borderaxespad=0.0)
            elif legend.labels:
                legend.draw(axis, lines)
        figure.supxlabel("\n".join(caption), fontsize=7)
    return figure


def results(drawn: Sequence[Panel], x: str) -> list[str]:
    """A sentence for each line: its mean at the last point that all its runs reach, and how sure it is."""
    said = []
    for panel in drawn:
        for line in panel.lines:
            at = line.last_shared
            error = line.band.high[at] - line.band.mean[at]
            interval = "" if math.isnan(error) else f" ± {four_digits(error)}"
            num_runs = line.band.num_runs[at]
            runs = f"{num_runs} run" + ("s" if num_runs > 1 else "")
            what = ", ".join(part for part in (panel.env, panel.y, line.label) if part)
            said.append(f"{what}: {four_digits(line.band.mean[at])}{interval} at {line.band.x[at]:,.0f} {x}, {runs}")
    return [*said, PLUS_MINUS] if any("±" in sentence for sentence in said) else said


def without_legend(drawn: Sequence[Panel]) -> list[str]:
    """A sentence for each panel with more lines than a legend can tell apart."""
    return [
        f"{panel.env}, {panel.y}: {len(panel.lines)} lines have no legend, because colours and dashes tell "
        f"{MOST_STYLES} apart: name fewer runs, or the settings that count with --group_by"
        for panel in drawn
        if len(panel.lines) > MOST_STYLES
    ]


def _hint(runs: Sequence[Run], x: str, y: str) -> str:
    """Says what to do if no run has two records with both."""
    names = {name for run in runs for name in run.metrics}
    if any(run.matching(y) for run in runs):
        return "wait for the second one" if x in names else "name another x"
    near = difflib.get_close_matches(y, names, n=3, cutoff=0.4)
    return f"did you mean {' or '.join(near)}?" if near else "the names are those in metrics.jsonl"


def _panel(env: str, runs: Sequence[Run], x: str, y: str, by: Sequence[str], smooth: float) -> Panel:
    found: list[tuple[str, tuple[Curve, ...]]] = []
    for members in group(runs, by):
        names = sorted({name for run in members.runs for name in run.matching(y)})
        for name in names:
            curves = [curve(run.kept, x, name) for run in members.runs]
            whole = tuple(c for c in curves if len(c.x) > 1)
            own = _metric_label(name, y) if len(names) > 1 else ""
            if whole:
                found.append((", ".join(part for part in (members.label, own) if part), whole))
    window = smooth * max((c.x[-1] for _, curves in found for c in curves), default=0.0)
    return Panel(env, y, tuple(Line(label, band(curves, window), curves) for label, curves in found))


def _metric_label(name: str, pattern: str) -> str:
    """The part of a metric's name that the pattern leaves open: policy_00/mean_return is policy_00."""
    before, _, _ = pattern.partition("*")
    after = pattern.rpartition("*")[2].lstrip("/")
    return name.removesuffix(after).rstrip("/") if after and "*" in pattern else name.removeprefix(before)


def _draw_panel(axis: Axes, panel: Panel, x: str, show_runs: bool) -> list[Line2D]:
    """The lines, for the legend."""
    name, unit = x_unit(x, panel.end)
    lines = []
    for line in panel.lines:
        at, num_shared = line.band.x / unit, line.num_shared
        (drawn,) = axis.plot(at[:num_shared], line.band.mean[:num_shared])
        lines.append(drawn)
        color = drawn.get_color()
        if num_shared < len(at):
            axis.plot(at[line.last_shared :], line.band.mean[line.last_shared :], color=color, linestyle=":")
        axis.fill_between(at, line.band.low, line.band.high, color=color, alpha=0.2, linewidth=0)
        for run in line.runs if show_runs else ():
            axis.plot(run.x / unit, run.y, color=color, linestyle="-", linewidth=0.5, alpha=0.5)
    axis.set(title=panel.env, xlabel=name, ylabel=panel.y, ylim=_limits(panel, show_runs))
    tidy_numbers(axis, x)
    return lines


def _wrapped(label: str) -> list[str]:
    """A label in several lines. None of them ends between the name of a setting and its value."""
    kept_together = label.replace(" ", "\xa0").replace(",\xa0", ", ")
    return [text.replace("\xa0", " ") for text in textwrap.wrap(kept_together, _LABEL_WIDTH)]


def _limits(panel: Panel, show_runs: bool) -> tuple[float, float]:
    """Returns limits with all of the lines, and all but the rare peaks of their runs and intervals. Intervals take two
    thirds of the height at most: that of two seeds is many times their distance."""
    peaks = 0.0 if show_runs else _PEAKS
    lows, highs, ends = [], [], []
    for line in panel.lines:
        runs, band = np.concatenate([run.y[run.x >= line.band.x[0]] for run in line.runs]), line.band
        lows.append(min(band.mean.min(), np.quantile(runs, peaks)))
        highs.append(max(band.mean.max(), np.quantile(runs, 1 - peaks)))
        ends.append(np.quantile(np.where(np.isnan(band.low), band.mean, band.low), _PEAKS))
        ends.append(np.quantile(np.where(np.isnan(band.high), band.mean, band.high), 1 - _PEAKS))
    low, high = float(min(lows)), float(max(highs))
    height = high - low
    low, high = min(low, max(float(min(ends)), low - height)), max(high, min(float(max(ends)), high + height))
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _caption(drawn: Sequence[Panel], smooth: float) -> str:
    lines = [line for panel in drawn for line in panel.lines]
    counts = sorted({len(line.runs) for line in lines})
    said = []
    if counts[-1] > 1:
        of = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        said.append(f"mean of {of} runs and {CONFIDENCE}")
    if any(line.num_shared < len(line.band.x) for line in lines):
        said.append("dotted: not all runs have come so far")
    if any(len(panel.lines) > MOST_STYLES for panel in drawn):
        said.append(f"no legend for more than {MOST_STYLES} lines")
    if smooth > 0:
        said.append(f"running mean over {100 * smooth:g} % of the axis")
    return "; ".join(said)
