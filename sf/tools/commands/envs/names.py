"""The names of environments: those that match a pattern, and those that the installed packages register.

The second list imports the packages.
"""

from __future__ import annotations

import fnmatch
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import gymnasium as gym
from rich.progress import track

from sf import envs
from sf.envs import EnvOptions, registry
from sf.envs.errors import summary
from sf.envs.family import Family
from sf.envs.libraries import gymnasium as gymnasium_ids
from sf.envs.libraries.gymnasium import WRAPPERS_OF_OLD_IDS
from sf.envs.libraries.packages import PACKAGES, users_of_gymnasium
from sf.metrics.display.console import OutputConsole
from sf.tools.commands.envs.descriptions import silence

_MATCHES = {"mpe2": "mpe2", "magent2": "magent2.environments"}
"""Packages with a module for each environment of several agents, and where those modules are."""


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


@dataclass(frozen=True)
class Installed:
    """An installed package, and its environments or why it has none here."""

    package: str
    env_ids: tuple[str, ...]
    error: str | None = None


def find_installed(pattern: str | None = None) -> list[Installed]:
    """Every package that registers environments, and those of the table that are installed and cannot be imported.

    pattern: part of the name of an environment or a package. Raises ValueError where nothing matches.
    """
    found = [each for each in _packages() if each.env_ids or each.error is not None]
    if pattern is None:
        return found
    whole = [each for each in found if matching([each.package], pattern)]
    parts = [Installed(each.package, tuple(matching(each.env_ids, pattern))) for each in found]
    matches = whole or [each for each in parts if each.env_ids]
    if not matches:
        raise ValueError(f"pattern is {pattern!r}: no installed package has such an environment")
    return matches


def _packages() -> Iterator[Installed]:
    named: dict[str, list[str]] = defaultdict(list)
    errors: dict[str, str] = {}
    present = [(package, env_ids) for package, env_ids in _sources() if find_spec(package) is not None]
    console = OutputConsole(stderr=True)
    with silence():
        for package, env_ids in track(
            present, "importing", console=console, transient=True, disable=not console.is_terminal
        ):
            named[package], error = _tried(env_ids)
            if error is not None:
                errors[package] = error
        before = set(gym.registry)
        errors.update(gymnasium_ids.load_plugins())
    of_plugins = gym.registry.keys() - before
    of_families = {family.package for family in registry.FAMILIES}
    for env_id in gymnasium_ids.newest(list(gym.registry)):
        package = _package_of(env_id)
        if package not in of_families and env_id not in (*named[package], *WRAPPERS_OF_OLD_IDS):
            named[package].append(env_id if env_id in of_plugins else _name(package, env_id))
    for package in sorted({*named, *errors}):
        yield Installed(package, tuple(sorted(named[package])), errors.get(package))


def _sources() -> Iterator[tuple[str, Callable[[], Iterable[str]]]]:
    """Packages, and what imports each of them and returns its names that are not in Gymnasium's registry."""
    of_families = [family for family in registry.FAMILIES if family.package is not None]
    for family in of_families:
        yield str(family.package), partial(_listed_of, family)
    for package in PACKAGES:
        yield package.module, partial(_imported, package.module, package.classes)
    for name, module in _MATCHES.items():
        yield name, partial(_matches_in, module)
    known = {*_MATCHES, *(package.module for package in PACKAGES), *(family.package for family in of_families)}
    for module in users_of_gymnasium() - known:
        yield module, partial(_imported, module)


def _tried(env_ids: Callable[[], Iterable[str]]) -> tuple[list[str], str | None]:
    try:
        return list(env_ids()), None
    except Exception as error:  # whatever the modules of a package raise must not end the list
        return [], summary(error)


def _package_of(env_id: str) -> str:
    spec = gym.registry[env_id]
    made_by = spec.entry_point or spec.vector_entry_point
    module = made_by.partition(":")[0] if isinstance(made_by, str) else getattr(made_by, "__module__", "")
    return module.partition(".")[0]


def _name(package: str, env_id: str) -> str:
    """With its module, where the id alone does not say which package to import."""
    is_known = package == "gymnasium" or any(
        each.module == package and re.fullmatch(each.ids, env_id) for each in PACKAGES
    )
    return env_id if is_known else f"{package}:{env_id}"


def _listed_of(family: Family) -> Iterable[str]:
    return family.listed(family.env_ids()) if family.env_ids is not None else ()


def _imported(module: str, env_ids: Iterable[str] = ()) -> Iterable[str]:
    """Those that come into Gymnasium's registry are found there."""
    importlib.import_module(module)
    return env_ids


def _matches_in(package: str) -> list[str]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return [f"{package}.{each.name}:parallel_env" for each in modules if each.name.rpartition("_v")[2].isdecimal()]
