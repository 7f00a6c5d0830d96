"""`sf-plot`: learning curves of runs, with several seeds as one line and its confidence band."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from sf.commands import cli
from sf.machine import extras
from sf.report.runs import load_all
from sf.storage import output_file


@dataclass(frozen=True)
class PlotFlags:
    """What to draw."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories, or folders with runs inside (train_dir: all of them)."""

    out: Path = Path("curves.png")
    """The picture: .png, .svg or .pdf."""

    x: Literal["env_frames", "env_steps", "seconds"] = "env_frames"
    """The horizontal axis."""

    y: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """What is drawn, any name in metrics.jsonl; again for another panel. A pattern in quotes is a line for each name
    that matches: "policy_*/mean_return"; * matches anything but /. Default: mean_return."""

    group_by: tuple[str, ...] = ()
    """Settings in which the runs of one line agree, the names in config.yaml; experiment makes a line of each run.
    Default: all but the seed and those that say where and how long it runs."""

    smooth: float = 0.02
    """Window of the running mean, as a share of the longest curve in the panel; 0 draws what was recorded."""

    show_runs: bool = False
    """Draw each run as a thin line, too."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.smooth <= 1.0:
            raise ValueError(f"smooth is {self.smooth}: a share of the axis, from 0 to 1")


def main() -> None:
    """Draw, and print where each line ends. Ends with 0, 2 after a user's mistake, 130 after Ctrl-C."""
    description = "Draw learning curves. Example: sf-plot train_dir --out curves.pdf --x seconds"
    flags = cli.parse_flags(PlotFlags, "sf-plot", description)
    with cli.exit_status():
        extras.require("plot", "matplotlib", purpose="a plot")
        plot(flags)


def plot(flags: PlotFlags) -> None:
    """Raises ValueError for what the user can fix."""
    from sf.report import figure, style  # noqa: PLC0415  they need matplotlib

    style.require_format(flags.out)
    if not flags.runs:
        raise ValueError("no run is named: for example sf-plot train_dir/doom_basic")
    output_file.require_writable("out", flags.out)
    drawn = figure.panels(
        load_all(flags.runs, _warn),
        flags.x,
        flags.y or ("mean_return",),
        flags.group_by,
        flags.smooth,
    )
    style.save(figure.draw(drawn, flags.x, flags.smooth, flags.show_runs), flags.out)
    print("\n".join([*figure.results(drawn, flags.x), str(flags.out)]))


def _warn(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
