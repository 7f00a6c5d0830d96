"""The code that this user has trained with: a line for each in ~/.local/state/sf/known_code.jsonl.

`sf-train` remembers what it was told to run, with the file that it was found in, so that `sf-eval` and the others may
run the same for the checkpoints of that run, wherever they are moved. The file is the user's to read and to edit. It
counts only where nobody else can write to it; without it every such name takes --trust.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class NamedCode(NamedTuple):
    """What a flag names. env_kwargs: of an environment, as text: they reach the code. file: where it was found."""

    flag: str
    name: str
    env_kwargs: str | None
    file: str


def path() -> Path:
    """In XDG_STATE_HOME, or ~/.local/state."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "sf" / "known_code.jsonl"


def load() -> set[NamedCode]:
    """All that is known; nothing where there is no such file, or it may have been written by somebody else."""
    try:
        with path().open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o022:
                return set()
            lines = file.read().splitlines()
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return set()
    return {code for line in lines if (code := _parsed(line)) is not None}


def remember(code: Iterable[NamedCode], say: Callable[[str], None]) -> None:
    """Know this code from now on. Where that cannot be written down, `say` is told what it means."""
    new = [each for each in code if each not in load()]
    if not new:
        return
    text = "".join(json.dumps(each._asdict()) + "\n" for each in new)
    try:
        path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, text.encode())  # one write, so that two runs do not mix theirs
        finally:
            os.close(file)
    except (OSError, RuntimeError) as error:
        names = " and ".join(f"{each.flag} {each.name!r}" for each in new)
        say(f"{names} cannot be remembered ({error}): sf-eval and others will want --trust true for this run")


def _parsed(line: bytes) -> NamedCode | None:
    try:
        code = NamedCode(**json.loads(line))
        hash(code)  # a TypeError where an entry is no text
    except (ValueError, TypeError):
        return None
    return code
