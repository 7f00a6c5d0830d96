"""Runs and checkpoints that are older than a flag, or than a value of it: what they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sf.envs.teams import SHARED_BEFORE

BEFORE_THE_FLAG: Mapping[str, Any] = {
    "bootstrap_truncated": True,
    "critic_clock": False,
    "critic": "own",
    "critic_obs": (),
    "teacher_obs": (),
    "mixer": "none",
    "layer_norm": False,
    "core_skip": False,
    "critic_clock_residual": False,
    "encoder_mlp_residual": 0,
    "encoder_conv_mlp_residual": 0,
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
    today, shared = dict(flags), flags.get("share_reward")
    if isinstance(shared, bool):
        today["share_reward"] = SHARED_BEFORE[shared]
    kwargs = json.loads(flags.get("env_kwargs", "{}")) if str(flags.get("env")).startswith("rts_") else {}
    if kwargs.pop("curriculum", None) is not None:  # help that fell with the episodes, as `--anneal env.help` says now
        today["env_kwargs"] = json.dumps(kwargs)
    return today


def env_before(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the flags that say what the environment of a saved run was before there were these flags."""
    return {"atari_raw": True} if str(saved.get("env")).startswith("pettingzoo:atari/") else {}
