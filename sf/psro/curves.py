"""How exploitable policies were while they trained, against env steps and against the clock, by several methods.

Read from runs with `--exploitability_every_env_steps`, and from searches of `sf-psro`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sf.psro import record as psro
from sf.report.records import read_records
from sf.report.style import house_style, log_scale, tidy_numbers, x_unit

_EVALUATIONS = "evaluations.jsonl"


@dataclass(frozen=True)
class Measured:
    """Of one run or search. points: [R, 3] env steps, seconds and exploitability, in the order of time."""

    label: str
    points: np.ndarray

    @property
    def lowest(self) -> float:
        return float(self.points[:, 2].min())

    @property
    def last(self) -> float:
        return float(self.points[-1, 2])


def load(directory: Path, label: str, policy_id: int = 0) -> Measured:
    """policy_id: of a run with several. Raises ValueError where nothing was measured."""
    if (directory / psro.NAME).is_file():
        iterations = psro.read(directory / psro.NAME)
        found = [
            (float(each.env_steps), each.seconds, each.exploitability)
            for each in iterations
            if each.exploitability is not None
        ]
    else:
        records, _ = read_records(directory / _EVALUATIONS) if (directory / _EVALUATIONS).is_file() else ([], 0)
        found = [
            (record["env_steps"], record["seconds"], record["exploitability"])
            for record in records
            if record.get("exploitability") is not None and record.get("policy_id", 0) == policy_id
        ]
    if not found:
        raise ValueError(
            f"{directory} has no exploitability: name a search of sf-psro, or a run that was started with "
            "--exploitability_every_env_steps, in a game that can be enumerated"
        )
    return Measured(label, np.array(found, dtype=float))


def draw(measured: Sequence[Measured], title: str) -> Figure:
    """Lines with the same label have one colour: they are seeds."""
    colours: dict[str, str] = {}
    with house_style():
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        by_steps, by_time = figure.subplots(1, 2, sharey=True)
        unit, seconds = x_unit("seconds", max(each.points[-1, 1] for each in measured))
        for each in measured:
            is_first = each.label not in colours
            colour = colours.setdefault(each.label, f"C{len(colours)}")
            steps, at, values = each.points.T
            label = each.label if is_first else None
            by_steps.plot(steps, values, color=colour, label=label)
            by_time.plot(at / seconds, values, color=colour)
        by_steps.set(xlabel="env steps", ylabel="exploitability")
        log_scale(by_steps)
        by_time.set(xlabel=unit)
        tidy_numbers(by_steps)
        by_steps.legend()
        figure.suptitle(title, fontsize=10)
    return figure
