"""Makes an `Episode` of what an environment says about one that has finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sf.envs.group import Episode

RAW_RETURN = "raw_return"


def finished_episode(actor_idx: int, paid: float, num_steps: int, num_frames: int, stats: Mapping[str, Any]) -> Episode:
    """paid: the sum of the rewards that the environment gave.

    stats: `info["episode_stats"]` of the last step. An environment that shapes its rewards puts the unshaped return
    there, as `raw_return`. That one is reported, and `paid` becomes the statistic `shaped_return`.
    """
    numbers = {name: float(value) for name, value in stats.items()}
    if RAW_RETURN not in numbers:
        return Episode(actor_idx, paid, num_steps, num_frames, numbers)
    raw_return = numbers.pop(RAW_RETURN)
    return Episode(actor_idx, raw_return, num_steps, num_frames, {**numbers, "shaped_return": paid})
