"""The table of families, in the order in which they are asked for a name, and listed by `sf-envs`."""

from __future__ import annotations

from sf.envs.atari.family import ATARI
from sf.envs.custom.module import MODULE
from sf.envs.custom.registered import REGISTERED
from sf.envs.doom.family import DOOM
from sf.envs.family import Family
from sf.envs.libraries.envpool import ENVPOOL
from sf.envs.libraries.gymnasium import GYMNASIUM
from sf.envs.libraries.pettingzoo import PETTINGZOO
from sf.envs.toys.family import TOY

FAMILIES: tuple[Family, ...] = (
    DOOM,
    ATARI,
    TOY,
    GYMNASIUM,
    PETTINGZOO,
    ENVPOOL,
    MODULE,
    REGISTERED,
)


def listed() -> list[Family]:
    """Those whose names can be listed."""
    return [family for family in FAMILIES if family.env_ids is not None]
