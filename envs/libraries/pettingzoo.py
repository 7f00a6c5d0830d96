"""PettingZoo's environments of several agents, by their ids there: `pettingzoo:classic/connect_four_v3`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from pathlib import Path
from typing import Any

from sf.envs.atari.match import entry_of_atari_matches
from sf.envs.entries import entry_of_matches
from sf.envs.errors import UsageError, is_refusal_of_arguments
from sf.envs.family import Entry, Family
from sf.envs.groups.parallel import ParallelEnv

_PREFIX = "pettingzoo:"
_INSTALL = "pip install 'pettingzoo>=1.27'"

_ATARI = "atari/"
_MOVED = {"mpe": ("mpe2", "mpe2"), "magent": ("magent2", "magent2.environments")}
"""Namespaces that PettingZoo had: the package that has each of them, and the module in it."""


def _find(env_id: str) -> Entry:
    """PettingZoo is asked for it only when it is made."""

    def make(**kwargs: Any) -> ParallelEnv:
        return _make(env_id, kwargs)

    return entry_of_atari_matches(make) if _is_atari(env_id) else entry_of_matches(make)


def _is_atari(env_id: str) -> bool:
    return env_id.startswith(f"{_PREFIX}{_ATARI}")


def _make(env_id: str, kwargs: dict[str, Any]) -> ParallelEnv:
    """Raises UsageError where PettingZoo is missing, or has no such environment, or it does not take its arguments."""
    name = env_id.removeprefix(_PREFIX)
    is_atari = _is_atari(env_id)
    if is_atari:
        kwargs = {**_with_roms(env_id), **kwargs}
    try:
        registry = importlib.import_module("pettingzoo.env_registry.registration")
        exceptions = importlib.import_module("pettingzoo.env_registry.exceptions")
    except ImportError as error:
        raise UsageError(f"env {env_id!r}: {error}: {_INSTALL}") from error
    try:
        try:
            return registry.make("parallel", name, **kwargs)
        except exceptions.NameNotFound:
            return registry.make("aec", name, **kwargs)  # its agents take turns: see sf.envs.groups.turns
    except (exceptions.PettingZooRegistryError, ImportError, TypeError, AssertionError) as error:
        if isinstance(error, TypeError) and not is_refusal_of_arguments(error):
            raise
        if isinstance(error, AssertionError) and not is_atari:  # Atari's games check their arguments so
            raise
        if isinstance(error, exceptions.NamespaceNotFound | exceptions.NameNotFound):
            raise UsageError(f"env {env_id!r}: PettingZoo has no {name!r}: {_hint(env_id)}") from error
        raise UsageError(f"env {env_id!r} with env_kwargs {kwargs}: {error}") from error


def _with_roms(env_id: str) -> dict[str, Any]:
    """Returns the argument that names ale-py's ROMs, where ale-py is installed. Raises UsageError without the emulator
    for several players."""
    if importlib.util.find_spec("multi_agent_ale_py") is None:
        raise UsageError(f"env {env_id!r} needs the emulator for several players: pip install multi-agent-ale-py")
    ale_py = importlib.util.find_spec("ale_py")
    if ale_py is None or ale_py.origin is None:
        return {}
    return {"auto_rom_install_path": str(Path(ale_py.origin).parent)}


def _hint(env_id: str) -> str:
    """Returns what to type instead of a name that PettingZoo does not know."""
    namespace, _, game = env_id.removeprefix(_PREFIX).partition("/")
    if namespace in _MOVED:
        package, folder = _MOVED[namespace]
        return f"it is in a package of its own now: pip install {package}, and --env {folder}.{game}:parallel_env"
    by_name = {known.removeprefix(_PREFIX): known for known in _env_ids()}
    nearest = [by_name[near] for near in difflib.get_close_matches(f"{namespace}/{game}", by_name, n=3, cutoff=0.75)]
    return f"did you mean {' or '.join(nearest)}?" if nearest else "sf-envs pettingzoo lists its names"


def _env_ids() -> list[str]:
    try:
        registry = importlib.import_module("pettingzoo.env_registry.registration")
    except ImportError:
        return []
    # Most games are in both, and those whose agents take turns in the second only.
    return [f"{_PREFIX}{name}" for name in {**registry.parallel_registry, **registry.aec_registry}]


PETTINGZOO = Family(
    name="pettingzoo",
    about="several agents; module:parallel_env and module:env can be named, too",
    pattern=f"{_PREFIX}.*",
    find=_find,
    env_ids=_env_ids,
    preset=lambda env_id, options: "atari" if _is_atari(env_id) and not options.atari_raw else None,
    package="pettingzoo",
    install=f"{_INSTALL}, and what a family of it needs",
)
