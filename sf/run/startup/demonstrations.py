"""Finds the data sets that `--demonstrations` names, and keeps them with the run as rows."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.ranks.place import Place
from sf.storage.demonstrations.demonstrated_rows import convert, require_fits
from sf.storage.demonstrations.minari_set import MinariSet
from sf.system.messages import say

_DIRECTORY = "demonstrations"  # in that of the run
_SAYS_EVERY_S = 5.0


def kept_at(run_dir: Path, names: Sequence[str]) -> Path:
    """Returns where the rows are, for as long as the run is there. names: of the data sets."""
    return run_dir / _DIRECTORY / hashlib.sha256(json.dumps(list(names)).encode()).hexdigest()[:16]


def require_demonstrations(config: Config, specs: Sequence[EnvSpec], run_dir: Path, place: Place) -> None:
    """Raises UsageError where there is no such data set, or one of other spaces. specs: of the policies, [P]."""
    names = config.learner.demonstrations
    if config.run.train_for_env_steps == 0 and not config.learner.bc_steps:
        raise UsageError("train_for_env_steps is 0: at least 1, unless bc_steps clones demonstrations")
    if not names:
        return
    if config.learner.bc_steps and place.size > 1:
        raise UsageError(
            f"bc_steps is {config.learner.bc_steps}, and cloning is done by one trainer: clone without torchrun, and "
            "begin this run with --init_from"
        )
    if any(spec != specs[0] for spec in specs):
        raise UsageError(
            "demonstrations are for policies that see and do the same, and those of this run do not: train the roles "
            "in runs of their own"
        )
    if not _goes_on(config, run_dir):
        for name in names:
            require_fits(MinariSet(name), config.run.env, specs[0])


def keep(config: Config, spec: EnvSpec, run_dir: Path) -> None:
    """Writes the rows into the directory of the run, where they are not yet. Raises UsageError for what cannot be
    trained on."""
    names = config.learner.demonstrations
    if not names or _goes_on(config, run_dir):
        return
    began = said_at = time.monotonic()

    def on_progress(done: int, total: int) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > _SAYS_EVERY_S:
            said_at = time.monotonic()
            say(f"demonstrations: {done:,} of {total:,} steps are read")

    directory = kept_at(run_dir, names)
    convert([MinariSet(name) for name in names], config.run.env, spec, directory, on_progress)
    num_bytes = sum(file.stat().st_size for file in directory.iterdir())
    seconds = time.monotonic() - began
    say(f"demonstrations: kept in {directory}, {num_bytes / 2**20:,.1f} MiB, read in {seconds:.0f} s")


def _goes_on(config: Config, run_dir: Path) -> bool:
    return config.run.restart_behavior == "resume" and kept_at(run_dir, config.learner.demonstrations).is_dir()
