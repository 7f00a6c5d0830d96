"""The picture of a league: win rates as a heat map, and ratings.

Of a tournament the map has a row and a column for each player. Of a run it has the win rate of the policies that learn
against each other player, in each part of the run: snapshots never meet each other there. Ratings are drawn by env
steps, with those of players without env steps as horizontal lines, or player by player where that says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
_MAP_WIDTH = 3.2
_LETTER = 0.068  # the width of a character of a label, in inches
_MOST_NUMBERS = 16  # players, up to which each cell says its number
_LABEL_WIDTH = 34  # characters; more where that leaves two labels alike
_LABEL_HEIGHT = 0.13  # inches, of a label beside a line


def draw(title: str, result: Standings) -> Figure:
    """Ratings are by env steps where there is a policy that learns, or are two that were trained."""
    labels = _labels([player.name for player in result.players])
    has_steps = bool(result.curves) or len({env_steps for _, env_steps, _ in _trained(result)}) > 1
    rows = len(result.players) * (_CELL if result.progress is None else _ROW)
    height = float(np.clip(rows, _LOWEST, _HIGHEST))
    map_width = 1.0 + _width(labels.values()) + (height if result.progress is None else _MAP_WIDTH)
    beside = _width(labels[player.name] for player in result.players if has_steps and player.env_steps is None)
    widths = [map_width, _CURVE_WIDTH + beside]
    with house_style():
        figure = Figure(figsize=(sum(widths), height + 1.0), layout="constrained")
        axes = figure.subplots(1, len(widths), width_ratios=widths)
        if result.progress is None:
            _draw_pairs(axes[0], result, labels)
        else:
            _draw_progress(axes[0], result.progress, labels)
        if has_steps:
            _draw_ratings(axes[1], result, labels, height)
        else:
            _draw_ladder(axes[1], result, labels)
        figure.suptitle(plain(title), fontsize=10)
    return figure


def _draw_pairs(axis: Axes, result: Standings, labels: Mapping[str, str]) -> None:
    rates, players = result.payoffs.win_rate, result.players
    image = axis.imshow(np.ma.masked_invalid(rates), cmap="RdBu", vmin=0, vmax=1)
    axis.set_yticks(range(len(players)), [f"{labels[player.name]}  {p}" for p, player in enumerate(players)])
    axis.set_xticks(range(len(players)), [str(p) for p in range(len(players))])
    axis.set(title="win rate of a row against a column")
    if len(players) <= _MOST_NUMBERS:
        for (row, column), rate in np.ndenumerate(rates):
            if not np.isnan(rate):
                color = "white" if abs(rate - 0.5) > 0.3 else INK
                axis.text(column, row, f"{100 * rate:.0f}", ha="center", va="center", fontsize=7, color=color)
    _finish_map(axis, image)


def _draw_progress(axis: Axes, progress: Progress, labels: Mapping[str, str]) -> None:
    rates, num = progress.win_rate, len(progress.opponents)
    extent = (progress.ends[0], progress.ends[-1], -0.5, num - 0.5)
    image = axis.imshow(
        np.ma.masked_invalid(rates), cmap="RdBu", vmin=0, vmax=1, aspect="auto", origin="lower", extent=extent,
        interpolation="nearest",
    )  # fmt: skip
    axis.set_yticks(range(num), [labels[name] for name in progress.opponents], fontsize=8 if num <= 30 else 6)
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


def _trained(result: Standings) -> list[tuple[int, int, Rating]]:
    """Returns number, env steps and rating of the fixed players that were trained."""
    return [
        (p, player.env_steps, player.rating)
        for p, player in enumerate(result.players)
        if player.env_steps is not None and player.name not in result.curves
    ]


def _draw_ladder(axis: Axes, result: Standings, labels: Mapping[str, str]) -> None:
    ratings = [player.rating for player in result.players]
    half = [(rating.high - rating.low) / 2 for rating in ratings]
    rows, means = range(len(ratings)), [rating.mean for rating in ratings]
    axis.errorbar(means, rows, xerr=half, linestyle="", marker="o", markersize=3, color=INK, capsize=2)
    axis.set_yticks(rows, [str(p) for p in rows])
    axis.set(title="rating", xlabel=_scale(result.held, labels), ylim=(len(ratings) - 0.5, -0.5))


def _draw_ratings(axis: Axes, result: Standings, labels: Mapping[str, str], height: float) -> None:
    """height: of the axes, about, in inches."""
    for number, (name, curve) in enumerate(result.curves.items()):
        color = PALETTE[number % len(PALETTE)]
        at = [point.env_steps for point in curve]
        axis.plot(at, [point.rating.mean for point in curve], color=color, label=plain(name))
        low, high = ([getattr(point.rating, end) for point in curve] for end in ("low", "high"))
        axis.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)
    points = _trained(result)
    at, means = [env_steps for _, env_steps, _ in points], [rating.mean for _, _, rating in points]
    half = [(rating.high - rating.low) / 2 for _, _, rating in points]
    # On a curve its own band has the interval of a snapshot.
    error = None if result.curves else half
    axis.errorbar(at, means, yerr=error, linestyle="", marker="o", markersize=3, color=INK, capsize=2)
    for p, env_steps, rating in () if result.curves else points:  # a curve says whose snapshots are on it
        axis.annotate(str(p), (env_steps, rating.mean), xytext=(3, 3), textcoords="offset points", fontsize=7)
    axis.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    untrained = [(player.rating.mean, labels[player.name]) for player in result.players if player.env_steps is None]
    for mean, _ in untrained:
        axis.axhline(mean, color=INK, linewidth=0.8, linestyle="--")
    bottom, top = axis.get_ylim()
    place = -np.inf
    for mean, label in sorted(untrained):
        place = max(mean, place + (top - bottom) * _LABEL_HEIGHT / height)
        axis.annotate(label, (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize=7)
    axis.set(title="rating", xlabel="env steps", ylabel=_scale(result.held, labels))
    tidy_numbers(axis)
    if len(result.curves) > 1:
        axis.legend()


def _scale(held: Mapping[str, float], labels: Mapping[str, str]) -> str:
    (name, rating), *others = held.items()
    return "Elo, by a reference pool" if others or rating != 0 else f"Elo above {labels.get(name, plain(name))}"


def _width(labels: Iterable[str]) -> float:
    """Returns the width of the longest one in inches, about."""
    return _LETTER * max(map(len, labels), default=0)


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Returns a label for each name. Long ones lack a part between beginning and end, and all labels differ."""
    whole = [plain(name) for name in names]
    for width in range(_LABEL_WIDTH, max(map(len, whole), default=0)):
        for begin in sorted(range(width // 4, width - width // 4), key=lambda begin: abs(begin - width // 2)):
            shortened = [name if len(name) <= width else f"{name[:begin]}...{name[begin - width :]}" for name in whole]
            if len(set(shortened)) == len(names):
                return dict(zip(names, shortened, strict=True))
    return dict(zip(names, whole, strict=True))
