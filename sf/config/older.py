"""Runs and checkpoints that are older than a flag, or than a value of it: what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sf.envs.teams import SHARED_BEFORE

BEFORE_THE_FLAG: Mapping[str, Any] = {
    "bootstrap_truncated": True,
    "critic_clock": False,
    "critic": "own",
    "critic_obs": (),
    "mixer": "none",
    "layer_norm": False,
    "value_scale": "linear",
    "normalize_returns_by": "all",
    "show_task": False,
    "pad_images": False,
    "any_planes": False,
    "float_planes": False,
    "decorrelate_episodes": False,
}


def as_today(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Returns saved flags with the values that this version writes in place of earlier ones that mean the same."""
    shared = flags.get("share_reward")
    return {**flags, "share_reward": SHARED_BEFORE[shared]} if isinstance(shared, bool) else dict(flags)


def env_before(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the flags that say what the environment of a saved run was before there were these flags."""
    return {"atari_raw": True} if str(saved.get("env")).startswith("pettingzoo:atari/") else {}
