"""The picture of a league: win rates as a heat map, and ratings by env steps.

Of a tournament the map has a row and a column for each player. Of a run it has the win rate of the policies that learn
against each other player, in each part of the run: snapshots never meet each other there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import EngFormatter

from sf.league.ratings import Rating
from sf.league.standings import Progress, Standings
from sf.storage.text_files import plain
from sf.tools.report.style import INK, PALETTE, house_style, tidy_numbers

_CELL, _ROW = 0.42, 0.16  # inches
_LOWEST, _HIGHEST = 3.0, 12.0
_CURVE_WIDTH = 4.6
_MAP_WIDTH = 5.5
_MOST_NUMBERS = 16  # players, up to which each cell says its number
_LABEL_WIDTH = 34  # characters


def draw(title: str, result: Standings) -> Figure:
    """There are ratings by env steps where there is a policy that learns, or are two that were trained."""
    points = _points(result)
    has_curve = bool(result.curves) or len({env_steps for env_steps, _ in points}) > 1
    rows = len(result.players) * (_CELL if result.progress is None else _ROW)
    height = float(np.clip(rows, _LOWEST, _HIGHEST))
    widths = [height + 2.0 if result.progress is None else _MAP_WIDTH, *([_CURVE_WIDTH] if has_curve else [])]
    with house_style():
        figure = Figure(figsize=(sum(widths), height + 1.0), layout="constrained")
        axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
        if result.progress is None:
            _draw_pairs(axes[0], result)
        else:
            _draw_progress(axes[0], result.progress)
        if has_curve:
            _draw_ratings(axes[1], result, points)
        figure.suptitle(plain(title), fontsize=10)
    return figure


def _draw_pairs(axis: Axes, result: Standings) -> None:
    rates, players = result.payoffs.win_rate, result.players
    image = axis.imshow(np.ma.masked_invalid(rates), cmap="RdBu", vmin=0, vmax=1)
    axis.set_yticks(range(len(players)), [f"{_shortened(player.name)}  {p}" for p, player in enumerate(players)])
    axis.set_xticks(range(len(players)), [str(p) for p in range(len(players))])
    axis.set(title="win rate of a row against a column")
    if len(players) <= _MOST_NUMBERS:
        for (row, column), rate in np.ndenumerate(rates):
            if not np.isnan(rate):
                color = "white" if abs(rate - 0.5) > 0.3 else INK
                axis.text(column, row, f"{100 * rate:.0f}", ha="center", va="center", fontsize=7, color=color)
    _finish_map(axis, image)


def _draw_progress(axis: Axes, progress: Progress) -> None:
    rates, num = progress.win_rate, len(progress.opponents)
    extent = (progress.ends[0], progress.ends[-1], -0.5, num - 0.5)
    image = axis.imshow(
        np.ma.masked_invalid(rates), cmap="RdBu", vmin=0, vmax=1, aspect="auto", origin="lower", extent=extent,
        interpolation="nearest",
    )  # fmt: skip
    axis.set_yticks(range(num), [_shortened(name) for name in progress.opponents], fontsize=8 if num <= 30 else 6)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.set(title="win rate against each player", xlabel="env steps")
    _finish_map(axis, image)


def _finish_map(axis: Axes, image: AxesImage) -> None:
    axis.set_facecolor("#eeeeee")  # where there was no match
    axis.grid(False)
    figure = axis.figure
    assert figure is not None
    bar = figure.colorbar(image, ax=axis, shrink=0.8, format=lambda rate, _: f"{100 * rate:.0f} %")
    bar.outline.set_visible(False)


def _points(result: Standings) -> list[tuple[int, Rating]]:
    """Returns env steps and rating of the fixed players that were trained."""
    return sorted(
        (player.env_steps, player.rating)
        for player in result.players
        if player.env_steps is not None and player.name not in result.curves
    )


def _draw_ratings(axis: Axes, result: Standings, points: list[tuple[int, Rating]]) -> None:
    for number, (name, curve) in enumerate(result.curves.items()):
        color = PALETTE[number % len(PALETTE)]
        at = [point.env_steps for point in curve]
        axis.plot(at, [point.rating.mean for point in curve], color=color, label=plain(name))
        low, high = ([getattr(point.rating, end) for point in curve] for end in ("low", "high"))
        axis.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
    at = [env_steps for env_steps, _ in points]
    means = np.array([rating.mean for _, rating in points])
    half = np.array([(rating.high - rating.low) / 2 for _, rating in points])
    # On a curve its own band has the interval of a snapshot.
    error = None if result.curves else half
    axis.errorbar(at, means, yerr=error, linestyle="", marker="o", markersize=3, color=INK, capsize=2)
    axis.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    axis.set(title="rating", xlabel="env steps", ylabel=_scale(result.held))
    tidy_numbers(axis)
    if len(result.curves) > 1:
        axis.legend()


def _scale(held: Mapping[str, float]) -> str:
    (name, rating), *others = held.items()
    return "Elo, by a reference pool" if others or rating != 0 else f"Elo above {_shortened(name)}"


def _shortened(name: str) -> str:
    """The end of a path says more than its beginning."""
    name = plain(name)
    return name if len(name) <= _LABEL_WIDTH else f"...{name[-_LABEL_WIDTH:]}"
