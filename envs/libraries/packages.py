"""Packages whose environments are in Gymnasium's registry once the package is imported, by what their ids look like.

An id that is not in the registry has its package imported: one of the table, or one that is called like the id's
namespace.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import site
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium as gym

from sf.envs.custom.named_objects import file_of_module
from sf.envs.entries import entry_of_envs
from sf.envs.errors import UsageError
from sf.envs.family import Entry
from sf.envs.groups.old_api import as_gymnasium


@dataclass(frozen=True)
class Package:
    """A package that registers environments."""

    ids: str
    """A regular expression that its ids match as a whole."""

    module: str
    install: str
    """What `pip install` takes."""

    classes: Mapping[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """The classes and arguments of ids that it registers nowhere, unless the package gym is installed, too."""


PACKAGES = (
    Package(r"(MiniGrid|BabyAI)-.+", "minigrid", "minigrid"),
    Package(
        r"(highway|merge|roundabout|parking|intersection|racetrack|exit|two-way|u-turn|lane-keeping)(-[a-z-]+)?-v\d+",
        "highway_env",
        "highway-env",
    ),
    Package(r"FlappyBird(-rgb)?-v\d+", "flappy_bird_gymnasium", "flappy-bird-gymnasium"),
    Package(
        r"Crafter(No)?Reward-v\d+",
        "crafter",
        "crafter",
        {"CrafterReward-v1": ("Env", {}), "CrafterNoReward-v1": ("Env", {"reward": False})},
    ),
    Package(r"NetHack.*-v\d+", "nle", "'nle>=1'"),  # pip would take an older one rather than an older gymnasium
    Package(r"MiniHack-.+", "minihack", "'minihack>=1' 'nle>=1' 'setuptools<81'"),  # it imports pkg_resources
    Package(r"MiniWorld-.+", "miniworld", "miniworld"),
    Package(r"popgym-.+", "popgym", "popgym"),
    Package(
        r"(mo-|deep-sea-treasure|resource-gathering|minecart|four-room|fishwood|fruit-tree|breakable-bottles|"
        r"water-reservoir).*-v\d+",
        "mo_gymnasium",
        "mo-gymnasium",
    ),
    Package(r"Foraging-.+", "lbforaging", "lbforaging"),
    Package(r"rware-.+", "rware", "rware"),
    Package(r"(Fetch|Hand|Adroit|AntMaze|PointMaze|FrankaKitchen).*-v\d+", "gymnasium_robotics", "gymnasium-robotics"),
    Package(r"Meta-World/.+", "metaworld", "metaworld"),
    Package(r"Panda.+-v\d+", "panda_gym", "panda-gym"),
    Package(r".+BulletEnv-v\d+", "pybullet_envs_gymnasium", "pybullet-envs-gymnasium"),
    Package(r"dm_control/.+", "shimmy", "'shimmy[dm-control]' 'mujoco<3.4'"),
    Package(r"bsuite/.+", "shimmy", "shimmy bsuite"),
    Package(r"SuperMarioBros.*-v\d+", "gym_super_mario_bros", "gym-super-mario-bros 'numpy<2'"),
    Package(r"procgen-.+-v\d+", "procgen", "procgen2"),
    Package(r"(Endless-)?(MortarMayhem|MysteryPath|SearingSpotlights).*-v\d+", "memory_gym", "memory-gym"),
    Package(r"Pogema-v\d+", "pogema", "pogema"),
    Package(r"[A-Z][A-Za-z]+(NoFrameskip)?-v[04]", "ale_py", "ale-py"),  # last: names of many others look like these
)


def file_beside_installed(env_id: str) -> str | None:
    """The file that would be imported for this id, where it is not of an installed package; None: there is none.

    A folder may have a module of the same name as a package of the table.
    """
    package = _package_of(env_id)
    if package is None or env_id in gym.registry:
        return None
    file = file_of_module(package.module)
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    is_installed = file is not None and any(Path(file).is_relative_to(os.path.realpath(path)) for path in installed)
    return None if is_installed else file


def find_in_package(env_id: str, entry_of_registered: Entry) -> Entry | None:
    """Returns the entry of an id after its package was imported; None where no package of the table has it.

    entry_of_registered: that of ids in Gymnasium's registry. Raises UsageError where the package cannot be imported.
    """
    package = _package_of(env_id)
    if package is None:
        return None
    try:
        module = importlib.import_module(package.module)
    except ImportError as error:
        raise UsageError(
            f"env {env_id!r} is one of the package {package.module}, which cannot be imported ({error}): "
            f"pip install {package.install}"
        ) from error
    if env_id in gym.registry:
        return entry_of_registered
    if env_id in package.classes:
        name, kwargs = package.classes[env_id]
        return entry_of_envs(partial(getattr(module, name), **kwargs))
    return find_in_old_registry(env_id)


def _package_of(env_id: str) -> Package | None:
    listed = next((each for each in PACKAGES if re.fullmatch(each.ids, env_id)), None)
    namespace, slash, _ = env_id.partition("/")
    if listed is not None or not slash or not namespace.isidentifier():
        return listed
    if importlib.util.find_spec(namespace) is not None:
        return Package(f"{namespace}/.+", namespace, namespace)
    return None


def find_in_old_registry(env_id: str) -> Entry | None:
    """Returns the entry of an id in the registry of the package gym, if a package has imported that; else None."""
    registry = getattr(sys.modules.get("gym.envs.registration"), "registry", {})
    spec = getattr(registry, "env_specs", registry).get(env_id)  # before gym 0.26 it was an object of its own
    return None if spec is None or spec.entry_point is None else entry_of_envs(_factory_in_old_registry(spec))


def _factory_in_old_registry(spec: Any) -> Callable[..., Any]:
    fixed = getattr(spec, "kwargs", None) or getattr(spec, "_kwargs", {})

    def make(**kwargs: Any) -> gym.Env:
        creator = spec.entry_point
        if isinstance(creator, str):
            module, _, name = creator.partition(":")
            creator = getattr(importlib.import_module(module), name)
        env = as_gymnasium(spec.id, creator(**{**fixed, **kwargs}))
        return env if spec.max_episode_steps is None else gym.wrappers.TimeLimit(env, spec.max_episode_steps)

    return make


def users_of_gymnasium() -> set[str]:
    """Returns the modules of the installed packages that depend on Gymnasium or gym. None is imported."""
    return {
        module
        for module, distributions in metadata.packages_distributions().items()
        if module.isidentifier() and any(map(_needs_gymnasium, distributions))
    }


def _needs_gymnasium(distribution: str) -> bool:
    requirements = metadata.requires(distribution) or []
    return distribution != "sf-appo" and any(
        re.match(r"gym(nasium)?\b", each) and "extra ==" not in each for each in requirements
    )
