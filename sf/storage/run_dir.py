"""The directory of a run, and what happens to one that is already there.

config.yaml      the resolved configuration
metrics.jsonl    one JSON record every few seconds
tensorboard/     the same for TensorBoard
checkpoints/     see sf.storage.checkpoint; with several policies checkpoints/policy_00/ and so on
checkpoints/milestones/     with --save_milestones_sec: checkpoints that are kept for good
wandb/           with --with_wandb: files of wandb
evaluations.jsonl     one JSON record for each evaluation, see sf.evaluation.during_training
videos/          with --video_every_env_steps, see sf.storage.video_files
run.log          all messages of the run, see sf.storage.run_log
summary.json     written at the end and at a stop; a start that resumes the run removes it
run_id           a random word: the run's id on all machines, in W&B and in Trackio
system.json      the machine and the versions at each start, see sf.metrics.system_info
population.jsonl, population.log     of a run with population-based training, see sf.league.population.record
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sf.config import Config, presets
from sf.config.input_file import is_file
from sf.config.older import as_today
from sf.envs.field_types import as_type, flag_types
from sf.storage import run_lock, text_files
from sf.storage.earlier_run import EarlierRun

# These flags say where a run is and how this start treats it. They do not change what is trained.
NOT_SAVED = ("train_dir", "restart_behavior", "experiment", "trust")

RANKS = ".ranks"  # the folder beside runs in which other ranks than the first write
UNSAVED = "the last checkpoint could not be written to"  # in what a run says at its end
FAILURE = "failure"  # what `stopped_by` in summary.json is where a process failed for good

# Settings that are read alone, without the rules of `Config`, by name: the bound that a number must exceed, if any.
_READ_ALONE: dict[str, int | None] = {
    "env": None,
    "num_policies": 0,
    "stats_avg": 0,
    "summaries_every_sec": 0,
    "train_for_env_steps": None,
    "train_for_env_frames": None,
    "train_for_seconds": None,
}


class _Inside:
    """A path inside of a run directory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, run_dir: RunDir, kind: type[RunDir]) -> Path:
        return run_dir.path / self._name


@dataclass(frozen=True)
class RunDir:
    """Paths of one run."""

    path: Path

    @classmethod
    def at(cls, train_dir: str, experiment: str) -> RunDir:
        return cls(Path(train_dir) / experiment)

    def itself(self) -> RunDir:
        """Follows a link to a folder: that folder is locked, moved aside and deleted, not the link."""
        return RunDir(Path(os.path.realpath(self.path))) if self.path.is_symlink() else self

    @property
    def ranks(self) -> Path:
        """Returns where other ranks than the first write."""
        return self.path.parent / RANKS / self.path.name

    def of_rank(self, rank: int) -> RunDir:
        """Returns where a rank writes what it says, if it has the disk of the first. It has no checkpoints."""
        return RunDir(self.ranks / f"{rank:02d}")

    config = _Inside("config.yaml")
    id = _Inside("run_id")
    metrics = _Inside("metrics.jsonl")
    evaluations = _Inside("evaluations.jsonl")
    tensorboard = _Inside("tensorboard")
    checkpoints = _Inside("checkpoints")
    videos = _Inside("videos")
    summary = _Inside("summary.json")
    log = _Inside("run.log")
    system = _Inside("system.json")

    def checkpoints_of(self, policy_id: int, num_policies: int) -> Path:
        """Returns where the checkpoints of a policy are: in a folder of its own, unless it is the only one."""
        return _of_policy(self.checkpoints, policy_id, num_policies)

    def milestones_of(self, policy_id: int, num_policies: int) -> Path:
        """Returns where a policy's checkpoints are kept for good."""
        return _of_policy(self.checkpoints / "milestones", policy_id, num_policies)

    def videos_of(self, policy_id: int, num_policies: int) -> Path:
        """Returns where the videos of a policy are, as its checkpoints."""
        return _of_policy(self.videos, policy_id, num_policies)

    def saved_flags(self) -> dict[str, Any] | None:
        """The flags of the run that is here, or None where there is none. Raises ValueError for a broken file."""
        if not is_file(self.config):
            return None
        flags = presets.parse(presets.read(self.config), str(self.config))
        if "env" not in flags:
            raise ValueError(f"{self.config} is not the configuration of a run: it has no env")
        return _readable(as_today(flags), self.config)

    def saved_id(self) -> str | None:
        """Returns what `prepare` was given at the beginning of the run, or None, as in older runs."""
        try:
            return self.id.read_text(errors="replace").strip() or None if is_file(self.id) else None
        except OSError:
            return None

    def saved_summary(self) -> dict[str, Any] | None:
        """The summary that the run wrote at its end; None where it is missing or damaged."""
        try:
            summary = json.loads(self.summary.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(summary, dict):
            return None
        if isinstance(summary.get("stopped_by"), int):  # the number of a signal, as earlier versions wrote it
            with suppress(ValueError):
                summary["stopped_by"] = signal.Signals(summary["stopped_by"]).name
        return summary

    def locked(self) -> AbstractContextManager[run_lock.Lock]:
        """Keeps every other run out; see sf.storage.run_lock. Raises ValueError where one is running."""
        return run_lock.held(self.path)

    def prepare(self, config: Config, run_id: str | None = None) -> EarlierRun:
        """Make the directory, move an earlier run aside unless it is resumed, and write config.yaml.

        run_id: of the run, the same on all machines.
        Returns the earlier run, which the caller settles when the new one is under way, or puts back. Raises ValueError
        where the path holds something else than a run, has links among its files, or cannot be written.
        """
        flags = {name: value for name, value in config.flat().items() if name not in NOT_SAVED}
        text = flags_text(flags)
        is_run = is_file(self.config)
        with self.refused_if_unwritable():
            left_over = _left_over_beside(self.config)
            if not is_run and self.path.exists() and set(self.path.iterdir()) - left_over:
                raise ValueError(
                    f"{self.path} exists and is not a run (it has no config.yaml): name another --experiment"
                )
            earlier = EarlierRun(self.path, config.run.restart_behavior if is_run else "resume")
            try:
                text_files.require_none(self.path)
                for path in left_over:
                    path.unlink(missing_ok=True)  # it may have been moved aside
                write_atomically(self.config, text.encode())  # first: without it, what a full disk leaves is no run
                if run_id is not None and run_id != self.saved_id():
                    write_atomically(self.id, run_id.encode())
                self.checkpoints.mkdir(exist_ok=True)
            except BaseException:  # Ctrl-C, too
                earlier.put_back()
                raise
        return earlier

    @contextmanager
    def refused_if_unwritable(self) -> Iterator[None]:
        """Raises ValueError where something cannot be written in the block."""
        try:
            yield
        except OSError as error:
            raise ValueError(f"{self.path} cannot hold a run ({error}): name another --train_dir") from None

    def remove_summary(self) -> None:
        """That of an earlier start: it tells how that one ended, and the run may be killed now."""
        with suppress(OSError):
            self.summary.unlink(missing_ok=True)

    def write_summary(self, summary: dict[str, Any]) -> None:
        write_atomically(self.summary, (text_files.dumps(summary, indent=2) + "\n").encode())


def _of_policy(directory: Path, policy_id: int, num_policies: int) -> Path:
    return directory if num_policies == 1 else directory / f"policy_{policy_id:02d}"


def flags_text(flags: Mapping[str, Any]) -> str:
    """The content of a config.yaml."""
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in flags.items()}
    return yaml.safe_dump(plain, sort_keys=False)


def _readable(flags: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """The flags, with the types that most readers rely on. Raises ValueError for a value of the wrong kind."""
    try:
        json.dumps(flags, default=str, skipkeys=True)
    except (ValueError, RecursionError) as error:  # a list inside itself, a number of ten thousand digits
        raise ValueError(f"{source} has a setting that cannot be read ({error})") from None
    types = flag_types(Config)
    read = {name: as_type(name, flags[name], types[name], f"{source}: ") for name in _READ_ALONE if name in flags}
    for name, value in read.items():
        bound = _READ_ALONE[name]
        if bound is not None and not value > bound:
            raise ValueError(f"{source}: {name} is {value}: it must be above {bound}")
    return {**flags, **read}


def temporary_beside(path: Path) -> Path:
    """Returns where a file is written before it gets its name. Short, as that name may be as long as names can be."""
    return path.with_name(f".{path.name[:40]}.{os.getpid()}.tmp")


def _left_over_beside(path: Path) -> set[Path]:
    """Finds what processes that were killed as they wrote `path` have left."""
    name = re.compile(re.escape(f".{path.name}.") + r"\d+\.tmp")
    return {each for each in path.parent.glob(".*.tmp") if name.fullmatch(each.name)}


def write_atomically(path: Path, data: bytes) -> None:
    """Readers see the old file or the new one, whole, also after a crash. Makes missing directories. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _written_beside(path, data) as temporary:
        temporary.replace(path)
    _sync_directory(path.parent)


def write_together(directory: Path, files: Mapping[str, bytes]) -> None:
    """Files of a directory, by name, the last of which tells of the others. Makes missing directories.

    Readers see the last one with its own others, whole, also after a crash, or no last one. Raises OSError; then all
    are as before, unless one of them cannot be replaced.
    """
    directory.mkdir(parents=True, exist_ok=True)
    *_, last = files
    with ExitStack() as stack:
        beside = {name: stack.enter_context(_written_beside(directory / name, data)) for name, data in files.items()}
        (directory / last).unlink(missing_ok=True)
        _sync_directory(directory)
        for name, temporary in beside.items():
            if name == last:
                _sync_directory(directory)
            temporary.replace(directory / name)
    _sync_directory(directory)


@contextmanager
def _written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """A temporary file, which is on the disk. It is removed where the block fails."""
    temporary = temporary_beside(path)
    try:
        temporary.unlink(missing_ok=True)  # of an earlier process with this number
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _sync_directory(path: Path) -> None:
    """The names in it must survive a crash. Windows cannot be asked for it."""
    if os.name == "nt":
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that syncs no directories
            raise
    finally:
        os.close(directory)
