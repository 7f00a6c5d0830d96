"""The picture of a population: the objective and the hyperparameters of each policy, and who took over from whom.

Where a policy receives the weights of another its line jumps to that one, along an arrow. The broad band is the lineage
of the policy that is the best at the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sf.league.population.record import EVENTS, Event, histories, read_events
from sf.storage.run_records import read_records
from sf.tools.report.curves import curve
from sf.tools.report.style import GOLD, PALETTE, house_style, log_scale

_COLUMNS = 3
_MILLION = 1e6
_ARROW = {"arrowstyle": "-|>", "linewidth": 1, "shrinkA": 0, "shrinkB": 0}


@dataclass(frozen=True)
class Evolution:
    """A population in figures; all frames are those of one policy, in millions."""

    events: list[Event]
    frames_per_step: float
    curves: dict[int, np.ndarray]  # by policy id: [R, 2] frames and objective of each record that has one

    @property
    def has_objective(self) -> bool:
        """Returns whether any policy has an objective yet: it takes some episodes."""
        return any(len(line) for line in self.curves.values())

    @property
    def best(self) -> int:
        """The policy with the highest objective at the end."""
        return max(self.curves, key=lambda idx: self.curves[idx][-1:, 1].max(initial=-math.inf))


def load(directory: Path, objective: str) -> Evolution:
    """Raises ValueError where the directory holds no population run."""
    if not (directory / EVENTS).is_file() or not (directory / "metrics.jsonl").is_file():
        raise ValueError(
            f"{directory} is not a run with population-based training (it has no {EVENTS}, or no metrics.jsonl): name "
            "the directory of a run that was started with --with_pbt true"
        )
    events = read_events(directory)
    records, _ = read_records(directory / "metrics.jsonl")
    ratios = [record["env_frames"] / record["env_steps"] for record in records if _has_steps(record)]
    scale = max(ratios, default=1.0) / _MILLION
    policy_ids = sorted({event.policy_id for event in events})
    curves = {}
    for policy_id in policy_ids:
        own = curve(records, f"policy_{policy_id:02d}/env_steps", f"policy_{policy_id:02d}/{objective}")
        curves[policy_id] = np.stack([own.x * scale, own.y], axis=1)
    return Evolution(events, scale, curves)


def _has_steps(record: Mapping[str, float]) -> bool:
    return record.get("env_steps", 0) > 0 and record.get("env_frames", 0) > 0


def draw(run: Evolution, objective: str, hyperparameters: Sequence[str] = ()) -> Figure:
    """Raises ValueError for a hyperparameter that the population does not have, and where nothing is recorded yet."""
    if not run.has_objective:
        raise ValueError(f"metrics.jsonl has no policy_00/{objective} yet: wait, or name another --y")
    names = list(hyperparameters) or _varied(run.events)
    unknown = set(names) - {name for event in run.events for name in event.hyperparameters}
    if unknown:
        raise ValueError(f"hyperparameters has {min(unknown)}, which the policies of this run do not have")
    rows = math.ceil(len(names) / _COLUMNS)
    with house_style():
        figure = Figure(figsize=(4 * _COLUMNS, 4.2 + 2.3 * rows), layout="constrained")
        grid = figure.add_gridspec(1 + rows, _COLUMNS, height_ratios=[4.2] + [2.3] * rows)
        top = figure.add_subplot(grid[0, :])
        colors = {policy_id: PALETTE[idx % len(PALETTE)] for idx, policy_id in enumerate(run.curves)}
        _draw_objective(top, run, objective, colors)
        for idx, name in enumerate(names):
            axis = figure.add_subplot(grid[1 + idx // _COLUMNS, idx % _COLUMNS], sharex=top)
            _draw_hyperparameter(axis, run, name, colors)
    return figure


def _varied(events: list[Event]) -> list[str]:
    """Names of the hyperparameters that have had several values, in events that have them."""
    names = dict.fromkeys(name for event in events for name in event.hyperparameters)
    return [name for name in names if len({event.hyperparameters.get(name) for event in events} - {None}) > 1]


def _draw_objective(axis: Axes, run: Evolution, objective: str, colors: dict[int, str]) -> None:
    lineage = _lineage_of(run.best, run)
    axis.plot(*lineage.T, color=GOLD, alpha=0.5, linewidth=7, solid_capstyle="butt", label="lineage of the best")
    for policy_id, line in run.curves.items():
        replacements = _replacements(policy_id, run)
        pieces = np.split(line, np.searchsorted(line[:, 0], [frames for frames, _ in replacements], side="right"))
        for (frames, event), idx in zip(replacements, range(len(pieces) - 1), strict=True):
            assert event.objective is not None
            assert event.copied_objective is not None
            before, after = (frames, event.objective), (frames, event.copied_objective)
            pieces[idx] = np.vstack([pieces[idx], np.array([before, (frames, math.nan)])])
            pieces[idx + 1] = np.vstack([np.array([after]), pieces[idx + 1]])
            axis.annotate("", xy=after, xytext=before, arrowprops={**_ARROW, "color": colors[policy_id]})
        axis.plot(*np.vstack(pieces).T, color=colors[policy_id], linewidth=1.4, label=f"policy {policy_id}")
    axis.set(xlabel="frames of a policy (millions)", ylabel=objective)
    axis.legend(fontsize=8, ncols=2)


def _replacements(policy_id: int, run: Evolution) -> list[tuple[float, Event]]:
    """The replacements of the policy: frames and event of each."""
    events = [event for event in run.events if event.policy_id == policy_id]
    pairs = zip(_frames(events, run), events, strict=True)
    return [(frames, event) for frames, event in pairs if event.kind == "replacement"]


def _frames(events: list[Event], run: Evolution) -> np.ndarray:
    """The frames of these events, each at most those of the next one: a killed run goes back to a checkpoint."""
    frames = np.array([event.env_steps * run.frames_per_step for event in events])
    return np.minimum.accumulate(frames[::-1])[::-1]


def _lineage_of(policy_id: int, run: Evolution) -> np.ndarray:
    """The curve [R, 2] of the weights that this policy has at the end, through all policies that have had them."""
    until, pieces = math.inf, []
    ancestors = histories(run.events)[policy_id].ancestors
    owners = [policy_id, *(ancestor.policy_id for ancestor in ancestors)]
    since = [*(ancestor.env_steps * run.frames_per_step for ancestor in ancestors), -math.inf]
    for owner, begin in zip(owners, since, strict=True):
        frames = run.curves[owner][:, 0]
        pieces.append(run.curves[owner][(frames > begin) & (frames <= until)])
        until = begin
    return np.vstack(pieces[::-1])


def _draw_hyperparameter(axis: Axes, run: Evolution, name: str, colors: dict[int, str]) -> None:
    label = name
    for policy_id, line in run.curves.items():
        events = [event for event in run.events if event.policy_id == policy_id and name in event.hyperparameters]
        if not events:
            continue
        values = np.array([event.hyperparameters[name] for event in events])
        if name == "gamma":  # its mutations scale the horizon
            label, values = "1 / (1 - gamma)", 1.0 / (1.0 - values)
        elif (values < 0).all():
            label, values = f"-{name}", -values
        frames = _frames(events, run)
        end = max(frames[-1], line[-1, 0]) if len(line) else frames[-1]
        axis.step([*frames, end], [*values, values[-1]], where="post", color=colors[policy_id], linewidth=1.2)
    log_scale(axis)
    axis.set_title(label, fontsize=9)
    axis.tick_params(labelsize=7, which="both")
