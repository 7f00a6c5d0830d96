"""Runs and checkpoints that are older than a flag: what they are of where they do not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BEFORE_THE_FLAG: Mapping[str, Any] = {
    "bootstrap_truncated": True,
    "critic_clock": False,
    "layer_norm": False,
    "value_scale": "linear",
    "pad_images": False,
    "any_planes": False,
    "float_planes": False,
    "decorrelate_episodes": False,
}


def env_before(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the flags that say what the environment of a saved run was before there were these flags."""
    return {"atari_raw": True} if str(saved.get("env")).startswith("pettingzoo:atari/") else {}
