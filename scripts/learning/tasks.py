"""The tasks that trainers are compared on: the rows of tasks.yaml."""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).with_name("tasks.yaml")
ENVIRONMENTS = Path(__file__).with_name("environments")
"""Where modules of tasks are that no package has."""

PEERS = ("stable_baselines3", "sample_factory")


@dataclass(frozen=True)
class PeerEnv:
    """The environment of a task in a peer."""

    env: str
    return_scale: float = 1.0  # by how much the returns that the peer reports are multiplied there


@dataclass(frozen=True)
class Task:
    """One row. Scores are means of raw returns."""

    name: str
    env: str
    frames: int
    at_least: float | None = None  # the score to reach; None where it is only written down
    random: float | None = None
    good: float | None = None
    max_seeds: int | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    peers: Mapping[str, PeerEnv] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("frames", "max_seeds"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value > 0):
                raise ValueError(f"{name} is {value}: it must be a whole number above 0")
        for name in ("at_least", "random", "good"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
                raise ValueError(f"{name} is {value}: it must be a finite number")

    @property
    def environment(self) -> dict[str, str]:
        """A digest of the file that has the environment, if it is one of ours: a run in another one is another run."""
        file = ENVIRONMENTS / f"{self.env.partition(':')[0]}.py"
        return {"environment": hashlib.sha256(file.read_bytes()).hexdigest()[:12]} if file.is_file() else {}

    def normalised(self, score: float) -> float | None:
        """0 is random, 1 is good. None where the row does not say what these are."""
        good = self.at_least if self.good is None else self.good
        if self.random is None or good is None or good == self.random:
            return None
        return (score - self.random) / (good - self.random)


def read(path: Path) -> dict[str, Task]:
    """By name. Raises ValueError where the table is wrong."""
    try:
        rows = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read ({' '.join(str(error).split())}): name another --table") from None
    if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
        raise ValueError(f"{path} is no table of tasks: each row is a name with its settings below it")
    return {str(name): _task(str(name), row, path) for name, row in rows.items()}


def _task(name: str, row: Mapping[str, Any], path: Path) -> Task:
    columns = [each.name for each in fields(Task) if each.name not in ("name", "peers")]
    unknown_columns = [column for column in row if column not in (*columns, *PEERS)]
    try:
        if unknown_columns:
            raise ValueError(f"there is no column {unknown_columns[0]}, only {', '.join((*columns, *PEERS))}")
        if "frames" not in row:
            raise ValueError("frames is missing: say how long to train")
        own = {column: value for column, value in row.items() if column not in PEERS}
        peers = {peer: _peer_env(row[peer]) for peer in PEERS if peer in row}
        return Task(**{"name": name, "env": name, **own, "peers": peers})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}, task {name}: {error}") from None


def _peer_env(value: Any) -> PeerEnv:
    return PeerEnv(**value) if isinstance(value, Mapping) else PeerEnv(str(value))


def chosen(tasks: Mapping[str, Task], names: Sequence[str]) -> list[Task]:
    """Those with these names, or all. Raises ValueError where there is none of a name."""
    for name in names:
        if name not in tasks:
            close = difflib.get_close_matches(name, tasks, n=1, cutoff=0.5)
            instead = f"did you mean {close[0]}?" if close else f"name one of {', '.join(tasks)}"
            raise ValueError(f"tasks has {name}: {instead}")
    return [task for task in tasks.values() if not names or task.name in names]
