"""Reads the YAML file of a sweep, and makes its runs.

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

import dataclasses
import hashlib
import itertools
import json
import math
import reprlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sf.config import Config, presets
from sf.config.trust import TRUST
from sf.envs.field_types import checked
from sf.envs.yaml_text import parse_yaml
from sf.run.startup.starting_flags import make_config
from sf.tools.commands import cli

_KEYS = ("flags", "grid", "seeds")
_OF_THE_SWEEP = ("experiment", "train_dir", "restart_behavior", TRUST)  # flags that no sweep can have
_FORBIDDEN = "<>:\"/\\|?* '"  # in the name of a directory
_LONGEST_NAME = 200  # bytes: file systems take 255, and beside the directory of a run are files with longer names
MAX_RUNS = 10_000
_MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep."""

    name: str  # of its directory
    point: Mapping[str, Any]  # of the grid
    seed: int
    flags: Mapping[str, Any]  # all that are given to it

    @property
    def point_name(self) -> str:
        """The same for all seeds of a combination."""
        return json.dumps(self.point, default=str)

    def arguments(self, directory: Path) -> list[str]:
        """Returns those of sf-train, for a run directory inside that of the sweep."""
        flags = {**self.flags, "train_dir": str(directory), "experiment": self.name}
        return cli.arguments(flags)

    def command(self, directory: Path) -> list[str]:
        """Returns the command line of its process."""
        return [sys.executable, "-m", "sf", *self.arguments(directory)]

    def with_flags(self, **flags: Any) -> SweepRun:
        """The same with these flags beside its own, or in their place."""
        return dataclasses.replace(self, flags={**self.flags, **flags})

    def configured(self, directory: Path, source: str = "") -> Config:
        """Its configuration as the flags say it, whatever is in its directory.

        Raises ValueError, which begins with `source` if it is named, for values that do not go together.
        """
        where = {"train_dir": str(directory), "experiment": self.name, "restart_behavior": "overwrite"}
        try:
            return make_config(**{**self.flags, **where})
        except ValueError as error:
            raise ValueError(f"{source}: {error}" if source else str(error)) from None


def read_sweep(path: Path) -> list[SweepRun]:
    """The runs of a sweep, all seeds of the first combination first. Raises ValueError for what is not a sweep, and for
    an unknown flag or a value that it cannot have.

    Whether the flags go together is for the parser of sf-train to say.
    """
    sweep = read_yaml(path, _KEYS)
    flags, grid = (mapping(path, sweep, key) for key in ("flags", "grid"))
    for name in (*flags, *grid):
        require_free_flag(path, name)
        if name in flags and name in grid:
            raise ValueError(f"{path}: {name} is under flags and under grid: leave it out of one of them")
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{path}: {name} under grid is {reprlib.repr(values)}: it must be a list of values")
    envs = grid.get("env", [flags.get("env")])
    if not all(isinstance(env, str) for env in envs):
        raise ValueError(f"{path}: name an environment under flags, for example env: CartPole-v1")
    seeds = seeds_of(path, sweep.get("seeds", 1))
    num_runs = math.prod(map(len, grid.values())) * len(seeds)
    if num_runs > MAX_RUNS:
        raise ValueError(f"{path} has {num_runs:,} runs: at most {MAX_RUNS:,} in one sweep, so shorten grid or seeds")
    runs = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        for seed in seeds:
            all_flags = checked(Config, {**flags, **point, "seed": seed}, str(path))
            require_values(path, all_flags)
            runs.append(SweepRun(_name(point, seed), point, seed, all_flags))
    by_name: dict[str, SweepRun] = {}
    for run in runs:
        if by_name.setdefault(run.name, run) is not run:
            raise ValueError(
                f"{path}: two combinations would share the directory {run.name}, in whose name characters such as / "
                "are dashes: name each value once, or give each a file of its own"
            )
    return runs


def read_yaml(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """The file of a sweep or a search. Raises ValueError where it is no YAML mapping, has a key twice, or has other
    keys than `keys`.
    """
    sweep = parse_yaml(presets.read(path), str(path))
    if not isinstance(sweep, dict) or not set(sweep) <= set(keys):
        raise ValueError(f"{path} must be a YAML mapping with the keys {', '.join(keys)} and no other")
    return sweep


def require_values(path: Path, flags: Mapping[str, Any]) -> None:
    """Raises ValueError for a value that sf-train would take for another flag, such as that of trust."""
    for name, value in flags.items():
        if any(word.startswith("--") for word in cli.words(value)):
            raise ValueError(f"{path}: {name} is {reprlib.repr(value)}: a value cannot begin with --, as a flag does")


def mapping(path: Path, sweep: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Raises ValueError where what is under `key` is no mapping of flags."""
    found = {} if sweep.get(key) is None else sweep[key]
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{path}: {key} must be a mapping of flag names to values")
    return found


def seeds_of(path: Path, seeds: Any) -> Sequence[int]:
    """A number of seeds stands for those from 0 on. Raises ValueError for one that is there twice, or is no seed."""
    if type(seeds) is int and 1 <= seeds <= MAX_RUNS:
        return range(seeds)
    are_whole = isinstance(seeds, list) and bool(seeds) and all(type(seed) is int for seed in seeds)
    if not are_whole or min(seeds) < 0 or max(seeds) > _MAX_SEED or len(set(seeds)) < len(seeds):
        raise ValueError(
            f"{path}: seeds is {reprlib.repr(seeds)}: it must be how many, from 1 to {MAX_RUNS}, or a list of "
            f"different whole numbers from 0 to {_MAX_SEED}"
        )
    return seeds


def require_free_flag(path: Path, name: str) -> None:
    """Raises ValueError for a flag that a sweep or a search sets itself."""
    if name in _OF_THE_SWEEP or name == "seed":
        hint = ", and list the seeds under seeds" if name == "seed" else ""
        raise ValueError(f"{path}: {name} is chosen by the command itself: leave it out{hint}")


def _name(point: Mapping[str, Any], seed: int) -> str:
    """Returns the name of a run's directory. If it would be too long, a digest stands for its end."""
    parts = [f"{name}={'x'.join(cli.words(value))}" for name, value in point.items()]
    name = "".join(c if c.isprintable() and c not in _FORBIDDEN else "-" for c in "_".join([*parts, f"seed={seed}"]))
    encoded = name.encode()
    if len(encoded) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:12]
    return f"{encoded[: _LONGEST_NAME - 40].decode(errors='ignore')}-{digest}_seed={seed}"
