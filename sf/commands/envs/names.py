"""The names of environments that match a pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping

from sf import envs
from sf.envs import EnvOptions, registry
from sf.envs.family import Family


def families() -> list[Family]:
    """Those whose names can be listed."""
    return [family for family in registry.FAMILIES if family.env_ids is not None]


def find(pattern: str | None, family: str | None = None, options: EnvOptions | None = None) -> list[str]:
    """The name itself, else the names that match, among those listed; where none does, among all that are known.

    Raises ValueError where none matches, with the nearest names.
    """
    known = {env: of for env, of in registry.known_names().items() if family in (None, of.name)}
    listed = _listed(known)
    if pattern is None:
        if not listed:
            raise ValueError(f"family is {family}: none of it is installed here" + _how_to_install(family))
        return listed
    if pattern in known:
        return [pattern]
    for candidates in (listed, sorted(known)):
        matches = matching(candidates, pattern)
        if matches:
            return matches
    if family is not None:
        raise ValueError(f"pattern is {pattern!r}: nothing of the family {family} matches" + _how_to_install(family))
    # It is in no list, and may be a name all the same; or this is the error that sf-train would give.
    envs.describe(pattern, options or EnvOptions())
    return [pattern]


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Those with the pattern as a part, or where it has * or ?, as a whole; in any case."""
    glob = pattern if re.search(r"[*?\[]", pattern) else f"*{pattern}*"
    return [name for name in names if fnmatch.fnmatch(name.lower(), glob.lower())]


def _listed(known: Mapping[str, Family]) -> list[str]:
    """The names that are listed where none is asked for, by family."""
    return [
        env
        for family in families()
        for env in sorted(family.listed([env for env, of in known.items() if of is family]))
    ]


def _how_to_install(name: str | None) -> str:
    install = next((family.install for family in families() if family.name == name), None)
    return f"; {install}" if install else ""
