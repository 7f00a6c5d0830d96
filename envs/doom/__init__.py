"""Doom tasks, played by ViZDoom."""

from envs.doom.group import DoomGroup, describe, make_group, make_rendered_group
from envs.doom.matches import MATCHES
from envs.doom.scenarios import SCENARIOS

ENV_IDS = (*SCENARIOS, *MATCHES)

__all__ = ["ENV_IDS", "DoomGroup", "describe", "make_group", "make_rendered_group"]
