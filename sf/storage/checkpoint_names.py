"""The names of checkpoints: the number of the save, and the env steps at it. Read without torch."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"checkpoint_(\d+)_(\d+)\.safetensors")


def newest_first(directory: Path) -> list[Path]:
    """Checkpoints by the number of their save, whole or not. Raises OSError for a directory that cannot be read."""
    numbered = [(int(name[1]), path) for path in files_in(directory) if (name := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(numbered, reverse=True)]


def files_in(directory: Path) -> list[Path]:
    """Raises OSError for a directory that cannot be read, which glob would take for an empty one."""
    return list(directory.iterdir()) if directory.exists() else []


def env_steps(path: Path) -> int:
    """Env steps of the policy when this checkpoint was saved."""
    return int(path.stem.split("_")[2])
