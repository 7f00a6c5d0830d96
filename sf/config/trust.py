"""Whether code that a file names may run: `module:Name`, in a checkpoint or a configuration that somebody else made.
A player `gtp:COMMAND` is such code, too: it starts a program.

A file may name what comes with this package or is registered. Other code is imported only where the user names it on
the command line, trusts the file, or has trained with the same names before. `sf-train` remembers what it was told to
run, a line each, in ~/.local/state/sf/known_code.jsonl, which is ignored where somebody else can write to it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sf.envs import registry
from sf.envs.custom.named_objects import file_of_module
from sf.envs.errors import UsageError
from sf.envs.openspiel.family import PREFIX as OPENSPIEL
from sf.envs.registry import code_of, writes_files
from sf.envs.tasks.file import tasks_of
from sf.envs.wrappers.named import code_of as code_of_wrapper
from sf.envs.wrappers.named import read_all
from sf.system.messages import say
from sf.system.portable import user_id


class NamedCode(NamedTuple):
    """Code that a flag names, in `file`, or for a program the directory that it is started in.

    env_kwargs: arguments of an environment or a wrapper, which reach the code.
    """

    flag: str
    name: str
    env_kwargs: str | None
    file: str


def known_code_path() -> Path:
    """Returns the file in XDG_STATE_HOME, or in ~/.local/state."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "sf" / "known_code.jsonl"


def known_code() -> set[NamedCode]:
    """All that is known. Nothing where the file is missing, or somebody else may have written to it."""
    try:
        with known_code_path().open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != user_id() or stat.S_IMODE(status.st_mode) & 0o022:
                return set()
            lines = file.read().splitlines()
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return set()
    return {code for line in lines if (code := _parsed(line)) is not None}


def remember_code(code: Iterable[NamedCode]) -> None:
    """Add code to the file. If it cannot be written, tell the user what that means."""
    new = [each for each in code if each not in known_code()]
    if not new:
        return
    text = "".join(json.dumps(each._asdict()) + "\n" for each in new)
    try:
        known_code_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(known_code_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
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


TRUST = "trust"  # the flag, which no file may set
SEARCH = "search:"  # the names of players that search begin with it
PROGRAM = "gtp:"  # the names of players that are programs begin with it, and a command follows
TASKS = "tasks"  # no flag: what a file of tasks names is not named by a user who names the file
_OF_THE_NETWORK = ("encoder", "model", "intrinsic")
_OF_PLAYERS = ("players", "teacher")


def named_code(flags: Mapping[str, Any]) -> list[NamedCode]:
    """The code that these flags would import and that does not come with the package, and environments that they would
    have write files. Imports none of it.

    flags: with values of the types that a `Config` has. Raises ValueError for wrappers that are not written so.
    """
    env = flags.get("env", "")
    found = _of_env("env", env, flags.get("env_kwargs", "{}"))
    tasks = tasks_of(env)
    for task in () if tasks is None else tasks.tasks:
        found += _of_env(TASKS, task.env, task.env_kwargs)
    for wrapper in read_all(flags.get("env_wrappers", ())):
        file = code_of_wrapper(wrapper)
        if file is not None:
            found.append(NamedCode("env_wrappers", wrapper.name, wrapper.arguments, file))
    named = [(flag, flags.get(flag, "")) for flag in _OF_THE_NETWORK]
    for players in _OF_PLAYERS:
        named += [(players, player) for player in flags.get(players, ()) if not player.startswith((OPENSPIEL, SEARCH))]
    for flag, name in named:
        module, colon, _ = name.partition(":")
        file = file_of_module(module) if colon else None
        if flag in _OF_PLAYERS and name.startswith(PROGRAM):
            file = os.getcwd()  # the words of a command may mean files there
        if file is not None:
            found.append(NamedCode(flag, name, None, file))
    return found


def _of_env(flag: str, env: str, env_kwargs: str) -> list[NamedCode]:
    file = code_of(env)
    if file is None and writes_files(env, env_kwargs):
        file = registry.__file__
    return [] if file is None else [NamedCode(flag, env, env_kwargs, file)]


def require_trusted(
    flags: Mapping[str, Any], source: object, is_trusted: bool, named_by_user: Collection[str] = ()
) -> None:
    """Raises ValueError where flags from a file name code that nobody vouches for.

    named_by_user: flags that are on the command line, too. is_trusted: the user trusts the file.
    """
    code = [each for each in named_code(flags) if each.flag not in named_by_user]
    if is_trusted or not code:
        return
    known = known_code()
    unknown = list(dict.fromkeys(f"{each.flag} {each.name!r}" for each in code if each not in known))
    if unknown:
        raise UsageError(
            f"{source} names {' and '.join(unknown)}: that is code, and you have not trained with it under this name "
            "before; if you trust whoever made the file, add --trust true (in Python trust=True)"
        )
