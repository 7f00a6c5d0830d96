"""Doom tasks, played by ViZDoom."""

from sf.envs.doom.group import DoomGroup, describe, make_group, make_rendered_group
from sf.envs.doom.matches import MATCHES
from sf.envs.doom.scenarios import SCENARIOS

ENV_IDS = (*SCENARIOS, *MATCHES)

__all__ = ["ENV_IDS", "DoomGroup", "describe", "make_group", "make_rendered_group"]
