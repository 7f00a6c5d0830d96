"""The code that this user has trained with: one line each in ~/.local/state/sf/known_code.jsonl.

`sf-train` remembers the code that it was told to run, and its file. So `sf-eval` and the other commands may run the
same code for the checkpoints of that run, wherever they are moved. The user may read and edit
the file. It is ignored where somebody else can write to it; then every such name needs --trust.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class NamedCode(NamedTuple):
    """Code that a flag names, in `file`.

    env_kwargs: arguments of an environment or a wrapper as text, since they reach the code.
    """

    flag: str
    name: str
    env_kwargs: str | None
    file: str


def path() -> Path:
    """In XDG_STATE_HOME, or ~/.local/state."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "sf" / "known_code.jsonl"


def load() -> set[NamedCode]:
    """All that is known. Nothing where the file is missing, or somebody else may have written to it."""
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
    """Add code to the file. Where it cannot be written, `say` is told what that means."""
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
