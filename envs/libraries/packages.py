"""Packages whose environments are in Gymnasium's registry once the package is imported, by what their ids look like.

An id that is not in the registry has its package imported, if it is one of the table.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym

from sf.envs.entries import entry_of_envs
from sf.envs.errors import UsageError
from sf.envs.family import Entry


@dataclass(frozen=True)
class Package:
    """A package that registers environments."""

    ids: str
    """A regular expression that its ids match as a whole."""

    module: str
    install: str
    """What `pip install` takes."""

    classes: Mapping[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """The classes and arguments of ids that it registers with gym, and not with Gymnasium."""


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
    Package(r"NetHack.*-v\d+", "nle", "nle"),
    Package(r"MiniHack-.+", "minihack", "minihack"),
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
)


def find_in_package(env_id: str, entry_of_registered: Entry) -> Entry | None:
    """The entry of an id after its package was imported; None where no package of the table has it.

    entry_of_registered: that of ids in Gymnasium's registry. Raises UsageError where the package cannot be imported.
    """
    package = next((each for each in PACKAGES if re.fullmatch(each.ids, env_id)), None)
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
    return None
