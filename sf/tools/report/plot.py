"""`sf-plot`: learning curves of runs, with several seeds as one line and its confidence band."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from sf.envs.field_types import require
from sf.storage import output_file
from sf.system.machine import extras
from sf.tools.commands import cli
from sf.tools.report.outputs import warn
from sf.tools.report.runs import load_all


@dataclass(frozen=True)
class PlotFlags:
    """What to draw."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or folders that contain runs (train_dir: all of them)."""

    out: Path = Path("curves.png")
    """Picture to write: .png, .svg or .pdf."""

    x: Literal["env_frames", "env_steps", "seconds"] = "env_frames"
    """Horizontal axis."""

    y: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Metric to draw: any name in metrics.jsonl. Repeat the flag for more panels. A quoted pattern draws one line
    for each name that matches: "policy_*/mean_return"; * matches anything but /. Default: mean_return."""

    group_by: tuple[str, ...] = ()
    """Settings, by their names in config.yaml, that the runs of one line share. experiment: one line per run.
    Default: all settings but the seed and those that say where and how long a run trains."""

    smooth: float = 0.02
    """Window of the running mean, as a share of the longest curve in the panel. 0: no smoothing."""

    show_runs: bool = False
    """Also draw each run as a thin line."""

    def __post_init__(self) -> None:
        require(0.0 <= self.smooth <= 1.0, f"smooth is {self.smooth}: a share of the axis, from 0 to 1")


def main() -> None:
    """Draw, and print where each line ends. Ends with 0, 2 after a user's mistake, 130 after Ctrl-C."""
    description = "Plot learning curves. Example: sf-plot train_dir --out curves.pdf --x seconds"
    flags = cli.parse_flags(PlotFlags, "sf-plot", description)
    with cli.exit_status():
        extras.require("plot", "matplotlib", purpose="a plot")
        plot(flags)


def plot(flags: PlotFlags) -> None:
    """Raises ValueError for what the user can fix."""
    from sf.tools.report import figure, style  # noqa: PLC0415  they need matplotlib

    style.require_format(flags.out)
    if not flags.runs:
        raise ValueError("no run is named: for example sf-plot train_dir/doom_basic")
    output_file.require_writable("out", flags.out)
    runs, ys = load_all(flags.runs, warn), flags.y or ("mean_return",)
    drawn = figure.panels(runs, flags.x, ys, flags.group_by, flags.smooth)
    style.save(figure.draw(drawn, flags.x, flags.smooth, flags.show_runs), flags.out)
    for sentence in figure.without_legend(drawn):
        warn(sentence)
    print("\n".join([*figure.results(drawn, flags.x), str(flags.out)]))
