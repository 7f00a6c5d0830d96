"""The code that flags name, and whether a file that they come from may have it imported."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sf.config.trust import known_code
from sf.config.trust.known_code import NamedCode
from sf.envs import registry
from sf.envs.custom.named_objects import file_of_module
from sf.envs.errors import UsageError
from sf.envs.openspiel.family import PREFIX as OPENSPIEL
from sf.envs.registry import code_of, writes_files
from sf.envs.wrappers.named import code_of as code_of_wrapper
from sf.envs.wrappers.named import read_all

TRUST = "trust"  # the flag, which no file may set
_OF_THE_NETWORK = ("encoder", "model")


def named_code(flags: Mapping[str, Any]) -> list[NamedCode]:
    """The code that these flags would import and that does not come with the package, and environments that they would
    have write files. Imports none of it.

    flags: with values of the types that a `Config` has. Raises ValueError for wrappers that are not written so.
    """
    found = []
    env = flags.get("env", "")
    env_kwargs = flags.get("env_kwargs", "{}")
    file = code_of(env)
    if file is None and writes_files(env, env_kwargs):
        file = registry.__file__
    if file is not None:
        found.append(NamedCode("env", env, env_kwargs, file))
    for wrapper in read_all(flags.get("env_wrappers", ())):
        file = code_of_wrapper(wrapper)
        if file is not None:
            found.append(NamedCode("env_wrappers", wrapper.name, wrapper.arguments, file))
    for flag in _OF_THE_NETWORK:
        module, colon, _ = flags.get(flag, "").partition(":")
        file = file_of_module(module) if colon else None
        if file is not None:
            found.append(NamedCode(flag, flags[flag], None, file))
    for player in flags.get("players", ()):
        if player.startswith(OPENSPIEL):
            continue
        module, colon, _ = player.partition(":")
        file = file_of_module(module) if colon else None
        if file is not None:
            found.append(NamedCode("players", player, None, file))
    return found


def require_trusted(
    flags: Mapping[str, Any], source: object, is_trusted: bool, named_by_user: Collection[str] = ()
) -> None:
    """Raises ValueError where flags from a file name code that nobody vouches for.

    named_by_user: flags that are on the command line, too. is_trusted: the user trusts the file.
    """
    code = [each for each in named_code(flags) if each.flag not in named_by_user]
    if is_trusted or not code:
        return
    known = known_code.load()
    unknown = [f"{each.flag} {each.name!r}" for each in code if each not in known]
    if unknown:
        raise UsageError(
            f"{source} names {' and '.join(unknown)}: that is code, and you have not trained with it under this name "
            "before; if you trust whoever made the file, add --trust true (in Python trust=True)"
        )
