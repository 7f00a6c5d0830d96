"""What is known of one policy at a moment: its latest episodes, its training, what evolution did to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np


def enough_episodes(stats_avg: int) -> float:
    """Episodes for an unbiased mean of the latest `stats_avg`: short ones finish first."""
    return stats_avg / 2


@dataclass(frozen=True)
class PolicyEvent:
    """What evolution did to a policy, and how many steps it had trained on."""

    what: str
    env_steps: int


class PolicyProgress:
    """What is known of one policy."""

    def __init__(self, stats_avg: int) -> None:
        self.env_steps = 0  # that its learner has taken
        self.episodes: deque[list] = deque(maxlen=stats_avg)  # the latest: return, steps, frames, stats
        self.train: dict[str, float] = {}  # of its latest report
        self.last_event: PolicyEvent | None = None  # what evolution did to it last

    def note_order(self, copies: int | None) -> None:
        """What evolution has decided over it. copies: the policy whose weights it takes over."""
        self.last_event = PolicyEvent("mutated" if copies is None else f"copied {copies}", self.env_steps)

    @property
    def has_enough_episodes(self) -> bool:
        """Enough for their mean to be reported."""
        assert self.episodes.maxlen is not None
        return len(self.episodes) >= enough_episodes(self.episodes.maxlen)

    @property
    def has_all_episodes(self) -> bool:
        """So many as its means are taken over."""
        return len(self.episodes) == self.episodes.maxlen

    def objective(self, name: str) -> float | None:
        """Mean of the statistic `name` of its episodes, or of the return where they have no such; None: too few."""
        if not self.has_enough_episodes:
            return None
        return float(np.mean([episode[3].get(name, episode[0]) for episode in self.episodes]))

    def means(self) -> dict[str, Any]:
        """Of its latest episodes, and of its training."""
        return {**episode_means(self.episodes), **{f"train/{name}": value for name, value in self.train.items()}}


def episode_means(episodes: Collection[list]) -> dict[str, Any]:
    """Over finished episodes: return, steps, frames, stats."""
    if not episodes:
        return {"mean_return": None, "mean_episode_steps": None, "episodes_in_mean": 0}
    returns = [episode[0] for episode in episodes]
    means = {
        "mean_return": float(np.mean(returns)),
        "std_return": float(np.std(returns)),
        "min_return": float(np.min(returns)),
        "max_return": float(np.max(returns)),
        "mean_episode_steps": float(np.mean([episode[1] for episode in episodes])),
        "mean_episode_frames": float(np.mean([episode[2] for episode in episodes])),
        "episodes_in_mean": len(episodes),
    }
    for name in sorted({name for episode in episodes for name in episode[3]}):
        means[f"stats/{name}"] = float(np.mean([episode[3][name] for episode in episodes if name in episode[3]]))
    return means
