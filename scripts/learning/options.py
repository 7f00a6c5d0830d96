"""The flags of scripts/bench_learning.py."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from learning.tasks import TABLE, unknown
from learning.trainers.trees import REPOSITORY

from sf.tools.commands import cli

TRAINERS = ("own", "stable_baselines3", "sample_factory")


@dataclass(frozen=True)
class Options:
    """What to compare, and where the results go."""

    tasks: tuple[str, ...] = ()
    """Rows of the table. Default: all of them."""

    trainers: tuple[str, ...] = TRAINERS
    """own is this project; the peers are stable_baselines3 and sample_factory."""

    own: tuple[str, ...] = ("tree",)
    """States of this project: commits, or tree, the files as they are. Each is a trainer."""

    own_flags: tuple[str, ...] = ("",)
    """More flags of sf-train: '' 'optimizer=muon encoder_mlp_layers=128 64' are two trainers of each state."""

    seeds: tuple[int, ...] = (1, 2, 3)
    """A run of each task and trainer for each of them."""

    frames: int | None = None
    """Train for this many frames instead of those of the table."""

    episodes: int = 100
    """Episodes of each of the two evaluations of a run."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Where all trainers run their networks."""

    results: Path = Path("train_dir/bench_learning")
    """Folder of results.jsonl, the runs, the checkouts and the report. The same folder goes on where it was stopped."""

    retry: cli.Switch = False
    """Make the runs again that failed."""

    report: cli.Switch = False
    """Only make the report again."""

    newest_own: cli.Switch = False
    """Report all states of this project as one trainer: of each task and seed the run that came last."""

    table: Path = TABLE
    """The tasks."""

    peers_dir: Path = REPOSITORY / ".peers"
    """Holds the virtual environments of the peers."""

    lock: Path = Path(tempfile.gettempdir()) / "bench_learning.lock"
    """The lock of the machine. Benches with the same one never run at the same time."""

    def __post_init__(self) -> None:
        for name in ("trainers", "own", "own_flags", "seeds"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                said = " ".join(map(str, values)) or "empty"
                raise ValueError(f"{name} is {said}: name at least one, and each once")
        for trainer in self.trainers:
            if trainer not in TRAINERS:
                raise ValueError(unknown("trainers", trainer, TRAINERS))
        for name in ("frames", "episodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: at least 1")
        if min(self.seeds) < 0 or max(self.seeds) >= 2**31 - 2_000_000:
            raise ValueError(f"seeds is {' '.join(map(str, self.seeds))}: each from 0 to 2,145,483,647")
