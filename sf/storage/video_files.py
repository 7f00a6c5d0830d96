"""The videos of a run: how they are named, and the small copy of each that goes to TensorBoard.

Videos are kept: none is removed or written over. The copy is hidden beside its video for as long as the parent needs to
read it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from sf.storage.run_dir import write_atomically

_NAME = re.compile(r"video_(\d+)(?:_\d+)?\.mp4")


def free_path(directory: Path, env_steps: int) -> Path:
    """Returns a new path for a video at these env steps. A run that went back to a checkpoint films them again."""
    directory.mkdir(parents=True, exist_ok=True)
    path, number = directory / f"video_{env_steps:012d}.mp4", 2
    while path.exists():
        path, number = directory / f"video_{env_steps:012d}_{number}.mp4", number + 1
    return path


def env_steps(path: Path) -> int | None:
    """Returns the env steps of the policy in a video of a run, or None for a file of another name."""
    named = _NAME.fullmatch(path.name)
    return int(named[1]) if named else None


def write_preview(video: Path, gif: bytes) -> None:
    write_atomically(_preview_of(video), gif)


def take_preview(video: Path) -> bytes:
    """Read and remove it. Raises OSError."""
    path = _preview_of(video)
    gif = path.read_bytes()
    path.unlink()
    return gif


def remove_unfinished(directory: Path) -> None:
    """Removes what an evaluator that died has left: half of a video, its copy, or half of the copy."""
    with suppress(OSError):
        for path in (*directory.glob(".video_*"), *directory.glob("..video_*")):
            path.unlink(missing_ok=True)


def _preview_of(video: Path) -> Path:
    return video.with_name(f".{video.name}.gif")
