"""Draw how a population evolved; sf.tools.report.population says what the picture shows.

    python scripts/documentation/plot_population.py train_dir/doom_duel --out population.png

Needs the extra plot: pip install '.[plot]'.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from sf.tools.commands import cli
from sf.tools.report.population import draw, load
from sf.tools.report.style import require_format, save


@dataclass(frozen=True)
class Flags:
    """What to draw."""

    run: tyro.conf.Positional[Path]
    """The directory of a run with population-based training."""

    out: Path = Path("population.png")
    """The picture: .png, .svg or .pdf."""

    y: str = "true_objective"
    """The objective: any name that metrics.jsonl has for each policy."""

    hyperparameters: tuple[str, ...] = ()
    """Those to draw. Default: all that ever changed, or differ between policies."""


def main() -> None:
    flags = cli.parse_flags(Flags, "plot_population.py", "Draw how a population evolved.")
    with cli.exit_status():
        require_format(flags.out)
        save(draw(load(flags.run, flags.y), flags.y, flags.hyperparameters), flags.out)
        print(flags.out)


if __name__ == "__main__":
    main()
