"""The results of bench_data.py as a picture: a bar for each variation. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from sf.tools.report.style import PALETTE, house_style, save


def draw(results: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Env steps on the left, seconds on the right, as means over seeds; paler where a seed has not reached the score.

    Raises ValueError where the file cannot be written.
    """
    rows = list(dict.fromkeys((each["question"], each["variation"]) for each in results))
    questions = list(dict.fromkeys(question for question, _ in rows))
    with house_style():
        figure = Figure(figsize=(8.4, 0.6 + 0.28 * len(rows)), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for panel, name, title in zip(panels, ("env_steps", "seconds"), ("env steps", "seconds"), strict=True):
            for height, row in enumerate(rows):
                of_row = [each for each in results if (each["question"], each["variation"]) == row]
                numbers = [each[name] or each[f"{name}_at_the_end"] for each in of_row]
                has_reached = all(each[name] is not None for each in of_row)
                color = PALETTE[questions.index(row[0]) % len(PALETTE)]
                panel.barh(height, fmean(numbers), color=color, alpha=1.0 if has_reached else 0.35)
            panel.set(xlabel=f"{title} to {results[0]['score']:g}")
        panels[0].set_yticks(range(len(rows)), [f"{question}: {name}" for question, name in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
    save(figure, out)
