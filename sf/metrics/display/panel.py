"""The live panel of one record. Everything here is pure but for the curve of returns, which grows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sf.metrics.bottleneck import Load
from sf.metrics.progress import Outlook
from sf.metrics.readable import clock, number, rate, rounded

_MAX_WIDTH = 110  # wider lines are hard to read
_CURVE_WIDTH = 24
_CURVE_POINTS = 512
_WIDTH_OF_PARTS = 76  # columns, from which on the time of each part takes one line
_BLOCKS, _ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
_TRAINING = {  # label by name
    "loss": "train/loss",
    "policy": "train/policy_loss",
    "value": "train/value_loss",
    "entropy": "train/entropy",
    "KL": "train/approx_kl",
    "lr": "train/learning_rate",
}
_OF_POLICY = ("true_objective", "mean_return", "env_steps", "train/learning_rate", "learner/busy_share")
_FAULTS = {
    "restarts": "processes replaced",
    "env_faults": "environments rebuilt",
    "lost_episodes": "episodes lost",
    "lost_frames": "frames lost",
    "train/skipped_updates": "updates skipped",
}


@dataclass(frozen=True)
class Target:
    """Says where a run ends. None: not by that."""

    frames: int | None = None
    seconds: float | None = None

    def share_done(self, record: dict[str, Any]) -> float | None:
        done = []
        if self.frames:
            done.append(record["env_frames"] / self.frames)
        if self.seconds:
            done.append(record["seconds"] / self.seconds)
        return min(1.0, max(done)) if done else None

    def seconds_left(self, record: dict[str, Any], outlook: Outlook) -> float | None:
        """Returns None if it is unknown."""
        left = []
        if self.frames and outlook.frames_per_second > 0:
            left.append(max(0.0, self.frames - record["env_frames"]) / outlook.frames_per_second)
        if self.seconds:
            left.append(max(0.0, self.seconds - record["seconds"]))
        return min(left) if left else None


class Curve:
    """The mean return of all records so far, on few points; `best` is the highest of all."""

    def __init__(self) -> None:
        self.points: list[float] = []
        self.best: float | None = None
        self._records_per_point = 1
        self._waiting: list[float] = []

    def add(self, value: float | None) -> None:
        """value: None where nothing is known yet. One that is not finite is left out."""
        if value is None or not math.isfinite(value):
            return
        self.best = value if self.best is None else max(self.best, value)
        self._waiting.append(value)
        if len(self._waiting) == self._records_per_point:
            self.points.append(_mean(self._waiting))
            self._waiting = []
        if len(self.points) == _CURVE_POINTS:
            self.points = [_mean(pair) for pair in zip(self.points[::2], self.points[1::2], strict=True)]
            self._records_per_point *= 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        blocks = _ASCII_BLOCKS if options.ascii_only else _BLOCKS
        yield Text(sparkline(self.points, blocks, min(_CURVE_WIDTH, options.max_width)), style="green", end="")


def _mean(values: Sequence[float]) -> float:
    """Averages also numbers whose sum would be infinite."""
    return sum(value / len(values) for value in values)


def sparkline(values: list[float], blocks: str = _BLOCKS, width: int = _CURVE_WIDTH) -> str:
    """At most `width` characters, from the lowest value to the highest. Infinite ones and NaN are left out."""
    known = np.array(values)[np.isfinite(values)]
    if not known.size:
        return ""
    known /= np.abs(known).max() or 1.0  # sums and differences of the largest numbers would not be finite
    means = [part.mean() for part in np.array_split(known, min(len(known), width))]
    low, high = min(means), max(means)
    scale = (len(blocks) - 1) / (high - low) if high > low else 0.0
    return "".join(blocks[round((mean - low) * scale)] for mean in means)


def panel(title: str, record: dict[str, Any], outlook: Outlook, target: Target, curve: Curve) -> RenderableType:
    """For terminals of at least 60 columns. Where one is too low, the bottom is cut off."""
    parts: list[RenderableType] = [
        _facts(_progress(record, outlook, target, curve)),
        _facts(_health(record, outlook)),
        *([_Parts(outlook.load)] if outlook.load else []),
        _facts([("bottleneck", outlook.bottleneck)]),
    ]
    if outlook.last_events[1:]:
        parts.append(_policies(record, outlook))
    return _Narrow(Panel(Group(*parts), title=Text(title, overflow="ellipsis", no_wrap=True)))


@dataclass(frozen=True)
class _Narrow:
    """At most _MAX_WIDTH columns, on a terminal of whatever width it has when it is drawn."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        yield from console.render(self.content, options.update_width(min(options.max_width, _MAX_WIDTH)))


def _facts(facts: Iterable[tuple[str, RenderableType]]) -> Table:
    table = Table.grid(padding=(0, 1), pad_edge=False)
    table.add_column(style="cyan", no_wrap=True, min_width=10)
    table.add_column(overflow="fold")
    for label, value in facts:
        table.add_row(label, Text(value) if isinstance(value, str) else value)
    return table


def _beside(text: str, drawing: RenderableType) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_row(text, drawing)
    return table


def _progress(
    record: dict[str, Any], outlook: Outlook, target: Target, curve: Curve
) -> Iterator[tuple[str, RenderableType]]:
    if outlook.env_start:
        yield "starting", _beside(outlook.env_start, ProgressBar(1.0, outlook.share_of_envs, width=_CURVE_WIDTH))
    left = target.seconds_left(record, outlook)
    time = f"{clock(record['seconds'])} elapsed, {clock(left)} left"
    share_done = target.share_done(record)
    if share_done is None:
        yield "time", time
    else:
        yield "time", _beside(f"{_percent(share_done)}, {time}", ProgressBar(1.0, share_done, width=_CURVE_WIDTH))
    of_target = f" of {target.frames:,}" if target.frames else ""
    yield "frames", f"{record['env_frames']:,}{of_target}"
    yield "frames/s", f"{rate(outlook.frames_per_second)} trained, {outlook.sampled_frames_per_second:,.0f} sampled"
    yield "return", _beside(f"{mean_return(record, outlook)} mean, {number(curve.best)} best", curve)
    if "stats/true_objective" in record:
        yield "objective", number(record["stats/true_objective"])
    steps = record["mean_episode_steps"]
    yield "episodes", f"{record['episodes']:,}" + ("" if steps is None else f", {steps:,.1f} steps each on average")
    if record.get("league/players"):
        yield "league", _league(record)


def mean_return(record: dict[str, Any], outlook: Outlook) -> str:
    """Returns the mean return, or why there is none yet."""
    if record["mean_return"] is None and outlook.num_waited_for:
        return f"- (first episodes: {outlook.num_waited_for} actors to go)"
    return number(record["mean_return"])


def _league(record: dict[str, Any]) -> str:
    """Describes the league; for several policies by the mean of their win rates, and the worst."""
    rates, worst = (
        [value for name, value in record.items() if name.endswith(f"league/{end}")]
        for end in ("win_rate", "worst_win_rate")
    )
    ratings = [f"{value:.0f}" for name, value in record.items() if name.endswith("league/rating")]
    words = [f"{record['league/players']} players"]
    if ratings:
        words.append(f"rating {', '.join(ratings)}")
    if rates:
        words.append(f"{_percent(float(np.mean(rates)))} won against them")
    if worst:
        ages = [f"{value:,}" for name, value in record.items() if name.endswith("league/worst_env_steps")]
        whom = "a past self" if len(worst) > 1 else f"the past self of {ages[0]} steps" if ages else "the strongest"
        words.append(f"{_percent(min(worst))} against {whom}")
    return ", ".join(words)


def _health(record: dict[str, Any], outlook: Outlook) -> Iterator[tuple[str, RenderableType]]:
    yield "lag", f"{number(record.get('train/lag_mean'))} mean, {number(record.get('train/lag_max'))} max versions"
    yield "training", _training(record)
    faults = [f"{what} {record[name]:,.0f}" for name, what in _FAULTS.items() if record.get(name)]
    if faults:
        yield "faults", Text(", ".join(faults), style="yellow")
    if outlook.checkpoint is not None:
        path, seconds_ago = outlook.checkpoint
        yield "saved", f"{clock(seconds_ago)} ago, {PurePath(*PurePath(path).parts[-2:])}"  # with the policy's folder


def _training(record: dict[str, Any]) -> RenderableType:
    values = {label: record.get(name) for label, name in _TRAINING.items()}
    words = [Text(f"{label} {value:.3g}") for label, value in values.items() if value is not None]
    return Columns(words, padding=(0, 2)) if words else "-"


@dataclass(frozen=True)
class _Parts:
    """Shows how each part spends its time, and how many cores it keeps busy."""

    load: Load

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        yield _parts(self.load, options.max_width < _WIDTH_OF_PARTS)


def _parts(load: Load, is_narrow: bool) -> Table:
    """is_narrow: what a part waits for is below its bar, and not beside it."""
    table = Table.grid(padding=(0, 1), pad_edge=False, expand=True)
    table.add_column(style="cyan", no_wrap=True, min_width=10)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(ratio=1)
    for _ in range(1 if is_narrow else 2):
        table.add_column(no_wrap=True)
    of_rollout = f"{_percent(load.rollout_wait)} for actions, {_percent(load.slot_wait)} for slots"
    for role, busy, waits in (
        ("rollout", load.rollout_busy, of_rollout),
        ("policy", load.policy_busy, f"{_percent(load.policy_wait)} for requests"),
        ("learner", load.learner_busy, f"{_percent(load.learner_wait)} for data"),
    ):
        beside, below = ([], [f"waits {waits}"]) if is_narrow else ([f"waits {waits}"], [])
        table.add_row(role, f"{_percent(busy)} busy", ProgressBar(1.0, busy), *beside, f"{load.cores[role]:.1f} cores")
        if below:
            table.add_row("", "", *below)
    return table


def _policies(record: dict[str, Any], outlook: Outlook) -> Table:
    """One row for each policy, the best first."""
    table = Table(box=None, padding=(0, 1), header_style="cyan", pad_edge=False)
    for name in ("policy", "objective", "return", "steps", "lr", "busy"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("last event", no_wrap=True)
    for policy_id in _ranked(record, len(outlook.last_events)):
        own = {name: record.get(f"policy_{policy_id:02d}/{name}") for name in _OF_POLICY}
        rate, event = own["train/learning_rate"], outlook.last_events[policy_id]
        table.add_row(
            str(policy_id),
            number(own["true_objective"]),
            number(own["mean_return"]),
            rounded(own["env_steps"] or 0),
            "-" if rate is None else f"{rate:.3g}",
            _percent(own["learner/busy_share"] or 0.0),
            Text("-" if event is None else f"{event.what} at {rounded(event.env_steps)}"),
        )
    return table


def _ranked(record: dict[str, Any], num_policies: int) -> Iterable[int]:
    def score(policy_id: int) -> float:
        objective = record.get(f"policy_{policy_id:02d}/true_objective")
        return float("-inf") if objective is None else objective

    return sorted(range(num_policies), key=score, reverse=True)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
