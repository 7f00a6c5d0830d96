"""The best checkpoint of a policy, beside its latest ones. Its score is in its state."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from pathlib import Path

from sf.envs.errors import UsageError
from sf.storage import checkpoint as checkpoints
from sf.storage.checkpoint import Checkpoint
from sf.storage.checkpoint_names import files_in
from sf.storage.run_dir import write_atomically
from sf.system.messages import say

_NAME = re.compile(r"best_\d+\.safetensors")
SCORE = "score"  # key in the state


def save_best(directory: Path, checkpoint: Checkpoint, score: float) -> Path:
    """Write the best checkpoint so far, then remove the one before. Only one process may call it.

    Raises OSError where it cannot be written. The one before stays whole. One that is not whole is renamed, and the
    user is told. One that cannot be read, or has a higher score after all, is left alone.
    """
    state = {**checkpoint.state, SCORE: score}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"best_{state['env_steps']:012d}.safetensors"
    write_atomically(path, checkpoints.encode(Checkpoint(checkpoint.tensors, state)))
    for left_over in directory.glob(".best_*.tmp"):  # by a process that was killed in here
        left_over.unlink()
    for other in best_files(directory):
        if other != path:
            with suppress(OSError):
                _remove_unless_better(other, score)
    return path


def of_task(directory: Path, task: str) -> Path:
    """Returns the folder of the best checkpoint at one of several tasks. directory: of the checkpoints of a policy."""
    return directory / "tasks" / task


def load_best(directory: Path) -> tuple[Path, Checkpoint]:
    """The one with the highest score. Raises ValueError where there is none that is whole and can be read."""
    checkpoints.require_folder(directory)
    whole: list[tuple[float, Path, Checkpoint]] = []
    errors: list[Exception] = []
    for path in best_files(directory):
        try:
            saved = checkpoints.load(path)
            whole.append((_score_in(saved, path), path, saved))
        except (OSError, ValueError) as error:  # noqa: PERF203  another may be whole
            if isinstance(error, FileNotFoundError) and not path.is_symlink():
                return load_best(directory)  # the run has replaced it meanwhile
            errors.append(error)
    if not whole:
        unreadable = [error for error in errors if isinstance(error, OSError)]
        which = f"that can be read ({unreadable[0]})" if unreadable else "yet"
        raise UsageError(f"{directory} has no best checkpoint {which}: use the latest")
    _, path, saved = max(whole, key=lambda found: found[0])
    return path, saved


def best_score(directory: Path) -> float:
    """Returns the score of the best checkpoint, or minus infinity if none is whole and can be read."""
    try:
        return load_best(directory)[1].state[SCORE]
    except ValueError:
        return -math.inf


def best_files(directory: Path) -> list[Path]:
    """Finds best checkpoints, whole or not: more than one after a kill. Raises OSError."""
    return [path for path in files_in(directory) if _NAME.fullmatch(path.name)]


def _score_in(saved: Checkpoint, path: Path) -> float:
    """Raises ValueError where there is none."""
    try:
        return float(saved.state[SCORE])
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path} is not a best checkpoint (it has no score)") from None


def _remove_unless_better(path: Path, score: float) -> None:
    """Raises OSError where it cannot be read or removed."""
    try:
        is_better = _score_in(checkpoints.load(path), path) > score
    except (FileNotFoundError, ValueError) as error:
        aside = path.rename(f"{path}.corrupt")
        say(f"{error}: renamed to {aside.name}")
        return
    if not is_better:
        path.unlink()
