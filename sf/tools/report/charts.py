"""The charts of one run: the metrics and the heading of each, drawn with values to hover over.

A metric that no chart names gets a chart of its own under the last heading. So a new metric of an environment or the
trainer is never left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sf.tools.report.curves import NUM_POINTS, Curve, curve, running_mean
from sf.tools.report.runs import Run
from sf.tools.report.style import NUM_DASHES, PALETTE, house_style, inline_svg, tidy_numbers, x_unit

_SIZE = (4.8, 2.6)  # inches; the page scales it

_Layout = Mapping[str, Mapping[str, str]]  # by title: the metrics of a chart, with their names in its legend

_EPISODES: _Layout = {
    "Return: mean and deviation": {"mean_return": "mean"},
    "Episode length": {"mean_episode_steps": "env steps"},
    "Return of evaluations: mean and its 95 % interval": {"eval/mean_return": "mean"},
    "Exploitability": {"eval/exploitability": "exploitability"},
}
_LEARNING: _Layout = {
    "Entropy of the policy": {"train/entropy": "entropy"},
    "KL divergence of an update": {"train/approx_kl": "KL"},
    "Policy loss": {"train/policy_loss": "policy loss"},
    "Value loss": {"train/value_loss": "value loss"},
    "Explained variance": {"train/explained_variance": "explained variance"},
    "Policy lag, versions": {"train/lag_mean": "mean", "train/lag_max": "maximum"},
    "Share of samples": {
        "train/clip_fraction": "policy clipped",
        "train/value_clip_fraction": "value clipped",
        "train/masked_share": "too old, masked",
    },
    "Norm of the gradients": {"train/grad_norm": "norm"},
    "Learning rate": {"train/learning_rate": "learning rate"},
    "Weight of the entropy bonus": {"train/exploration_loss_coeff": "weight"},
}
_THROUGHPUT: _Layout = {
    "Frames per second": {"env_frames_per_second": "trained", "sampled_env_frames_per_second": "sampled"},
    "Share of time at work": {
        "rollout/busy_share": "rollout workers",
        "policy/busy_share": "policy workers",
        "learner/busy_share": "learner",
    },
    "Share of time waiting": {
        "rollout/wait_share": "rollout workers, for actions",
        "rollout/slot_wait_share": "rollout workers, for slots",
        "policy/wait_share": "policy workers, for requests",
        "learner/wait_share": "learner, for data",
    },
    "Actions of one inference": {"policy/actions_per_batch": "actions"},
}
# With several policies, by the metric of each: the title. What is not here has its name for a title.
_OF_POLICIES = {
    "mean_return": "Return",
    "true_objective": "Objective",
    "mean_episode_steps": "Episode length",
    "eval/mean_return": "Return of evaluations",
    "eval/exploitability": "Exploitability",
    "league/rating": "Rating",
    "league/win_rate": "Win rate in the league",
    "train/entropy": "Entropy",
    "train/approx_kl": "KL divergence",
    "train/policy_loss": "Policy loss",
    "train/value_loss": "Value loss",
    "train/explained_variance": "Explained variance",
    "train/lag_mean": "Policy lag",
    "train/grad_norm": "Norm of the gradients",
    "train/learning_rate": "Learning rate",
    "train/exploration_loss_coeff": "Weight of the entropy bonus",
}
_OF_POLICY = re.compile(r"(policy_\d+)/(.+)")
_EVALUATION = re.compile(r"(?:policy_\d+/)?eval/mean_return")
_SHARES = ("Share of time at work", "Share of time waiting")
_NOT_DRAWN = {
    "start", "stats_avg", "env_steps", "env_frames", "seconds", "episodes", "episodes_in_mean",
    "std_return", "min_return", "max_return", "mean_episode_frames",
    "train/num_samples", "train/num_choices", "train/policy_version",
    "eval/env_steps", "eval/mean_return_low", "eval/mean_return_high",
}  # fmt: skip
_NOTES = {
    "train/explained_variance": "Left out where the returns barely vary: it means nothing there.",
}
_FLOORS = {"train/explained_variance": -1.0}  # of the vertical axis: what lies below says no more


@dataclass(frozen=True)
class Chart:
    """A drawing with the values to hover over."""

    title: str
    metrics: tuple[str, ...]  # one for each line
    svg: Markup
    note: str
    hover: dict[str, Any]  # what report.js reads: the place of the axes within the drawing, and the values of each line


def sections(run: Run, x: str) -> list[tuple[str, list[Chart]]]:
    """Headings with their charts. Those without data are left out."""
    known = [name for name in run.metrics if not _OF_POLICY.fullmatch(name) and name not in _NOT_DRAWN]
    placed = {name for layout in (_EPISODES, _LEARNING, _THROUGHPUT) for metrics in layout.values() for name in metrics}
    rest = [name for name in known if name not in placed]
    statistics = {name.removeprefix("stats/"): {name: name} for name in rest if name.startswith("stats/")}
    others = {name: {name: name} for name in rest if not name.startswith("stats/") and _is_ever_nonzero(run, name)}
    headings = {
        "Episodes": {**_EPISODES, **statistics},
        "Policies": _of_policies(run),
        "Learning": _LEARNING,
        "Throughput": _THROUGHPUT,
        "More": others,
    }
    drawn = []
    for heading, members in headings.items():
        charts = [_chart(run, x, title, metrics) for title, metrics in members.items()]
        if any(charts):
            drawn.append((heading, [chart for chart in charts if chart]))
    return drawn


def _of_policies(run: Run) -> _Layout:
    """A chart for each metric, with a line for each policy."""
    found: dict[str, dict[str, str]] = {name: {} for name in _OF_POLICIES}
    for name in sorted(run.metrics):
        parts = _OF_POLICY.fullmatch(name)
        if parts and parts[2] not in _NOT_DRAWN and (parts[2] in _OF_POLICIES or _is_ever_nonzero(run, name)):
            found.setdefault(parts[2], {})[name] = parts[1]
    return {f"{_OF_POLICIES.get(name, name)} of each policy": lines for name, lines in found.items()}


def _is_ever_nonzero(run: Run, name: str) -> bool:
    return any(record.get(name) for record in run.records)


def _chart(run: Run, x: str, title: str, metrics: Mapping[str, str]) -> Chart | None:
    """The chart; None where no metric has two values."""
    curves = {name: _thinned(curve(run.kept, x, name)) for name in metrics}
    curves = {name: line for name, line in curves.items() if len(line.x) > 1}
    if not curves:
        return None
    label, unit = x_unit(x, max(line.x[-1] for line in curves.values()))
    with house_style():
        figure = Figure(figsize=_SIZE, layout="constrained")
        axis = figure.subplots()
        for name, line in curves.items():
            (drawn,) = axis.plot(line.x / unit, line.y)
            band = _band(run, x, name)
            if band is not None:
                at, below, above = band
                axis.fill_between(at / unit, below, above, color=drawn.get_color(), alpha=0.2, linewidth=0)
        axis.set_xlabel(label)
        tidy_numbers(axis, x)
        if title in _SHARES:
            axis.set_ylim(0.0, 1.0)
        floors = [_FLOORS[of_all] for of_all in map(_of_all, curves) if of_all in _FLOORS]
        low, high = axis.get_ylim()
        if floors and max(floors) < high:
            axis.set_ylim(bottom=max(low, *floors))
    svg = inline_svg(figure, title)
    labels = [metrics[name] for name in curves]
    note = next((_NOTES[of_all] for of_all in map(_of_all, curves) if of_all in _NOTES), "")
    return Chart(title, tuple(curves), svg, note, _hover(axis, labels, list(curves.values()), label, unit))


def _of_all(name: str) -> str:
    """The metric without the policy that it is of."""
    parts = _OF_POLICY.fullmatch(name)
    return parts[2] if parts else name


def _band(run: Run, x: str, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Returns x, low and high of the band around a curve, each [R]; None if there is none, or its metrics are not in
    the same records.

    It has a gap at evaluations without an interval, whose returns were all the same. A deviation reaches no further
    than the returns that it is the deviation of.
    """
    if name == "mean_return":
        mean, deviation = curve(run.kept, x, name), curve(run.kept, x, "std_return")
        if len(mean.x) != len(deviation.x):
            return None
        low, high = mean.y - deviation.y, mean.y + deviation.y
        least, most = curve(run.kept, x, "min_return"), curve(run.kept, x, "max_return")
        if len(mean.x) == len(least.x) == len(most.x):  # earlier versions did not record them
            low, high = np.maximum(low, least.y), np.minimum(high, most.y)
        return mean.x, low, high
    if _EVALUATION.fullmatch(name):
        mean, *known = (curve(run.kept, x, f"{name}{end}") for end in ("", "_low", "_high"))
        low, high = np.full((2, len(mean.x)), np.nan)
        for ends, of_known in zip((low, high), known, strict=True):
            ends[np.isin(mean.x, of_known.x)] = of_known.y
        return mean.x, low, high
    return None


def _thinned(line: Curve) -> Curve:
    """Returns at most `NUM_POINTS` of a long run. Each is the mean over its part of the axis."""
    if len(line.x) <= NUM_POINTS:
        return line
    at = np.linspace(line.x[0], line.x[-1], NUM_POINTS)
    return Curve(at, running_mean(line, at, at[1] - at[0]))


def _hover(axis: Axes, names: Sequence[str], curves: Sequence[Curve], label: str, unit: float) -> dict[str, Any]:
    """names: of the curves. The box is in shares of the drawing's width and height, from its upper left corner."""
    box, (begin, end) = axis.get_position(), axis.get_xlim()
    return {
        "box": _rounded([box.x0, 1.0 - box.y1, box.width, box.height]),
        "limits": [begin, end],
        "label": label,
        "series": [
            {
                "name": name,
                "color": idx % len(PALETTE),
                "dash": idx // len(PALETTE) % NUM_DASHES,
                "x": _rounded(line.x / unit),
                "y": _rounded(line.y),
            }
            for idx, (name, line) in enumerate(zip(names, curves, strict=True))
        ],
    }


def _rounded(values: Sequence[float] | np.ndarray) -> list[float]:
    """Rounds to six digits. Nobody reads more, which would make the page a tenth larger."""
    return [float(f"{value:.6g}") for value in values]
