"""From the YAML file of a sweep to its runs.

flags:                      # of every run
  env: CartPole-v1
  num_workers: 2
  train_for_env_steps: 100000
grid:                       # every combination of these
  learning_rate: [0.0001, 0.0003, 0.001]
  rollout: [16, 32]
seeds: [0, 1, 2]            # of every combination; or a number of them
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sf import cli
from sf.config import Config
from sf.envs.field_types import checked

_KEYS = ("flags", "grid", "seeds")
_OF_THE_SWEEP = ("experiment", "train_dir", "restart_behavior")  # flags that say where a run is
_FORBIDDEN = "<>:\"/\\|?* '"  # in the name of a directory


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

    name: str  # of its directory
    point: Mapping[str, Any]  # of the grid
    seed: int
    flags: Mapping[str, Any]  # all that are given to it

    def arguments(self, directory: Path) -> list[str]:
        """Of sf-train, for a run directory inside that of the sweep."""
        flags = {**self.flags, "train_dir": str(directory), "experiment": self.name}
        return cli.arguments(flags)


def read_sweep(path: Path) -> list[SweepRun]:
    """The runs of a sweep, all seeds of the first combination first. Raises ValueError for what is not a sweep, and for
    an unknown flag or a value that it cannot have.

    Whether the flags go together is for the parser of sf-train to say.
    """
    try:
        sweep = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error})") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from None
    if not isinstance(sweep, dict) or not set(sweep) <= set(_KEYS):
        raise ValueError(f"{path} must be a YAML mapping with the keys {', '.join(_KEYS)} and no other")
    flags, grid = (_mapping(path, sweep, key) for key in ("flags", "grid"))
    for name in (*flags, *grid):
        if name in _OF_THE_SWEEP or name == "seed":
            raise ValueError(f"{path}: {name} is chosen by the sweep itself: leave it out" + _hint(name))
    if "env" not in {**flags, **grid}:
        raise ValueError(f"{path}: name an environment under flags, for example env: CartPole-v1")
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{path}: {name} under grid is {values!r}: it must be a list of values")
    runs = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        for seed in _seeds(path, sweep.get("seeds", 1)):
            all_flags = checked(Config, {**flags, **point, "seed": seed}, str(path))
            runs.append(SweepRun(_name(point, seed), point, seed, all_flags))
    if len({run.name for run in runs}) < len(runs):
        raise ValueError(f"{path}: two runs have the same values: each value of a list, and each seed, once")
    return runs


def _mapping(path: Path, sweep: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = sweep.get(key) or {}
    if not isinstance(found, dict):
        raise ValueError(f"{path}: {key} must be a mapping of flag names to values")
    return found


def _seeds(path: Path, seeds: Any) -> Sequence[int]:
    found = list(range(seeds)) if isinstance(seeds, int) else seeds
    if not isinstance(found, list) or not found or not all(isinstance(seed, int) for seed in found):
        raise ValueError(f"{path}: seeds is {seeds!r}: a list of numbers, or how many")
    return found


def _hint(name: str) -> str:
    return ", and list the seeds under seeds" if name == "seed" else ""


def _name(point: Mapping[str, Any], seed: int) -> str:
    parts = [f"{name}={'x'.join(cli.words(value))}" for name, value in point.items()]
    return "".join("-" if c in _FORBIDDEN else c for c in "_".join([*parts, f"seed={seed}"]))
