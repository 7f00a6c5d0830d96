"""Draw learning curves from the metrics of runs: one panel an environment, one line a run.

    python scripts/plot_curves.py train_dir/a train_dir/b --out curves.png

Needs matplotlib: pip install -e .[plot].
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import matplotlib as mpl
import tyro
import yaml
from matplotlib import pyplot as plt

mpl.use("Agg")

_COLUMNS = 3
_LABELS = {"env_frames": "frames (millions)", "seconds": "minutes"}
_UNITS = {"env_frames": 1e6, "seconds": 60.0}


@dataclass(frozen=True)
class Arguments:
    """What to draw."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories."""

    out: Annotated[Path, tyro.conf.arg(name="out")] = Path("curves.png")
    """The picture: .png, .svg or .pdf."""

    x: Literal["env_frames", "seconds"] = "env_frames"
    """The horizontal axis."""

    y: str = "mean_return"
    """The vertical axis: any name in metrics.jsonl."""


def main() -> None:
    arguments = tyro.cli(Arguments, description=__doc__)
    panels: dict[str, list[tuple[str, list[dict[str, Any]]]]] = {}
    for run in arguments.runs:
        env = yaml.safe_load((run / "config.yaml").read_text())["env"]
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        panels.setdefault(env, []).append((run.name, [r for r in records if r.get(arguments.y) is not None]))
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5 * columns, 3.4 * rows), squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (env, curves) in zip(axes.flat, panels.items(), strict=False):
        for name, records in curves:
            x = [record[arguments.x] / _UNITS[arguments.x] for record in records]
            axis.plot(x, [record[arguments.y] for record in records], label=name, linewidth=1.4)
        axis.set(title=env, xlabel=_LABELS[arguments.x], ylabel=arguments.y)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.savefig(arguments.out, dpi=130)
    print(arguments.out)


if __name__ == "__main__":
    main()
