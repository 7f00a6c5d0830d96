"""Finds and makes the files beside the runs in the directory of a sweep or a search."""

from __future__ import annotations

from pathlib import Path

from sf.config.input_file import is_file
from sf.storage import text_files
from sf.storage.run_dir import RunDir


def require_no_run(directory: Path, file: Path) -> None:
    """Raises ValueError where the directory that a sweep or a search would take from the name of `file` is a run."""
    if is_file(RunDir(directory).config):
        raise ValueError(f"{directory} is a run, so it can hold no others: rename {file}, or name another --train_dir")


def make_directory(directory: Path) -> None:
    """Makes the directory of the runs. Raises ValueError if it cannot be made, or if a log in it is a link."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{directory} cannot hold the runs ({error.strerror}): name another --train_dir") from None
    for log in directory.glob("*.log"):
        text_files.require_file(log)


def log_of(directory: Path, name: str) -> Path:
    """The output of the run of that name: beside its directory, which the run itself makes."""
    return directory / f"{name}.log"


def last_line(path: Path) -> str | None:
    """The last line with words in it; None where there is none, or no file."""
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return None
    return lines[-1] if lines else None
