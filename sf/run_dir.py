"""The directory of a run, and what happens to one that is already there.

config.yaml      the resolved configuration
metrics.jsonl    one JSON record every few seconds
tensorboard/     the same for TensorBoard
checkpoints/     see sf.checkpoint; with several policies checkpoints/policy_00/ and so on
checkpoints/milestones/     with --save_milestones_sec: those that are kept for good
wandb/           with --with_wandb: its files, and the id of the run there
evaluations.jsonl     one JSON record an evaluation, see sf.evaluations
run.log          all that the run says, see sf.run_log
summary.json     written at the end and at a stop
system.json      the machine and the versions at each start, see sf.system_info
population.jsonl, population.log     of a run with population-based training, see sf.population.record
"""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sf import finite_json, no_links, presets, run_lock
from sf.config import Config
from sf.earlier_run import EarlierRun

# They say where a run is and how this start treats it, not what is trained.
NOT_SAVED = ("train_dir", "restart_behavior", "experiment", "trust")

_COUNT = ((int,), lambda value: value >= 1, "a whole number, at least 1")
_LIMIT = ((int, float, type(None)), lambda value: True, "a number")
# Settings that are read without the others, and so without the rules of `Config`: kinds, a test, and both in words.
_READ_ALONE: dict[str, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    "env": ((str,), lambda value: True, "the name of an environment"),
    "num_policies": _COUNT,
    "stats_avg": _COUNT,
    "summaries_every_sec": ((int, float), lambda value: value > 0, "a number above 0"),
    "train_for_env_steps": _LIMIT,
    "train_for_env_frames": _LIMIT,
    "train_for_seconds": _LIMIT,
}


@dataclass(frozen=True)
class RunDir:
    """Paths of one run."""

    path: Path

    @classmethod
    def at(cls, train_dir: str, experiment: str) -> RunDir:
        return cls(Path(train_dir) / experiment)

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def evaluations(self) -> Path:
        return self.path / "evaluations.jsonl"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def checkpoints_of(self, policy_id: int, num_policies: int) -> Path:
        """Where the checkpoints of a policy are: in a folder of its own, unless it is the only one."""
        return self.checkpoints if num_policies == 1 else self.checkpoints / f"policy_{policy_id:02d}"

    def milestones_of(self, policy_id: int, num_policies: int) -> Path:
        """Where the checkpoints of a policy are that are kept for good."""
        directory = self.checkpoints / "milestones"
        return directory if num_policies == 1 else directory / f"policy_{policy_id:02d}"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def log(self) -> Path:
        return self.path / "run.log"

    @property
    def system(self) -> Path:
        return self.path / "system.json"

    def saved_flags(self) -> dict[str, Any] | None:
        """The flags of the run that is here, or None where there is none. Raises ValueError for a broken file."""
        if not self.config.is_file():
            return None
        flags = presets.parse(presets.read(self.config), str(self.config))
        if "env" not in flags:
            raise ValueError(f"{self.config} names no env, so it is not the configuration of a run")
        _require_readable(flags, self.config)
        return flags

    def saved_summary(self) -> dict[str, Any] | None:
        """What the run wrote at its end; None where that is missing or damaged."""
        try:
            summary = json.loads(self.summary.read_bytes())
        except (OSError, ValueError):
            return None
        return summary if isinstance(summary, dict) else None

    def locked(self, say: Callable[[str], None] = print) -> AbstractContextManager[None]:
        """Keeps every other run out; see sf.run_lock. Raises ValueError where one is running."""
        return run_lock.held(self.path, say)

    def prepare(self, config: Config) -> EarlierRun:
        """Make the directory, move an earlier run aside unless it is resumed, and write config.yaml.

        Returns that earlier run, to be settled when the new one is under way, or put back.
        Raises ValueError where the path is taken by something that is not a run, has links among its files, or cannot
        be written.
        """
        flags = {name: value for name, value in config.flat().items() if name not in NOT_SAVED}
        text = yaml.safe_dump(
            {name: list(value) if isinstance(value, tuple) else value for name, value in flags.items()},
            sort_keys=False,
        )
        is_run = self.config.is_file()
        try:
            if not is_run and self.path.exists() and any(self.path.iterdir()):
                raise ValueError(
                    f"{self.path} exists and holds no config.yaml, so it is not a run: name another --experiment"
                )
            earlier = EarlierRun(self.path, config.run.restart_behavior if is_run else "resume")
            try:
                no_links.require_none(self.path)
                self.checkpoints.mkdir(parents=True, exist_ok=True)
                write_atomically(self.config, text.encode())
            except OSError:
                earlier.put_back()
                raise
        except OSError as error:
            raise ValueError(f"{self.path} cannot hold a run ({error}): name another --train_dir") from None
        return earlier

    def write_summary(self, summary: dict[str, Any]) -> None:
        write_atomically(self.summary, (finite_json.dumps(summary, indent=2) + "\n").encode())


def _require_readable(flags: Mapping[str, Any], source: Path) -> None:
    """Raises ValueError for a setting that its readers cannot take: most of them need no whole `Config`."""
    try:
        json.dumps(flags, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:  # a list inside itself, a number of ten thousand digits
        raise ValueError(f"{source} has a setting that is none ({error})") from None
    for name, (kinds, is_right, rule) in _READ_ALONE.items():
        if name in flags and not (type(flags[name]) in kinds and is_right(flags[name])):
            raise ValueError(f"{source}: {name} is {reprlib.repr(flags[name])}: it must be {rule}")


def temporary_beside(path: Path) -> Path:
    """Where a file is written before it gets its name, which may be as long as the file system takes."""
    return path.with_name(f".{path.name[:40]}.{os.getpid()}.tmp")


def write_atomically(path: Path, data: bytes) -> None:
    """Write so that a reader, or a crash, sees the old file or the new one, whole. Makes missing directories.

    Raises OSError, having removed what it wrote, where that is possible.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    try:
        temporary.unlink(missing_ok=True)  # of a process that had the same number
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the rename itself must survive a crash
    finally:
        os.close(directory)
