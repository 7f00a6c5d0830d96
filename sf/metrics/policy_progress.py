"""The progress of one policy: its latest episodes, its training, and the last decision of evolution."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from sf.population.config import PopulationConfig
from sf.processes.reports import WIN_RATE


def enough_episodes(stats_avg: int) -> float:
    """Episodes for an unbiased mean of the latest `stats_avg`: short ones finish first."""
    return stats_avg / 2


@dataclass(frozen=True)
class PolicyEvent:
    """A decision over a policy, and the env steps that it had trained on."""

    what: str
    env_steps: int


class PolicyProgress:
    """The progress of one policy."""

    def __init__(self, stats_avg: int) -> None:
        self.env_steps = 0  # that its learner has taken
        self.episodes: deque[list] = deque(maxlen=stats_avg)  # the latest: return, steps, frames, stats, order
        self.train: dict[str, float] = {}  # the latest metrics of its learner
        self.last_event: PolicyEvent | None = None  # the last decision over its weights

    def note_order(self, copies: int | None, begins_anew: bool = False) -> None:
        """Something was decided over the policy. copies: the policy whose weights it takes over."""
        what = "begun anew" if begins_anew else "mutated" if copies is None else f"copied {copies}"
        self.last_event = PolicyEvent(what, self.env_steps)

    def add(self, episode: list) -> None:
        """Insert an episode by its order: other workers may have reported later ones. Without one it is last."""
        later = []
        while self.episodes and self.episodes[-1][4] > episode[4]:
            later.append(self.episodes.pop())
        self.episodes.append(episode)
        self.episodes.extend(reversed(later))

    @property
    def has_enough_episodes(self) -> bool:
        """Whether there are enough for their mean to be reported."""
        assert self.episodes.maxlen is not None
        return len(self.episodes) >= enough_episodes(self.episodes.maxlen)

    def objective(self, name: str) -> float | None:
        """Mean of `objective_values`; None: too few episodes."""
        values = self.objective_values(name)
        return float(np.mean(values)) if values else None

    def objective_values(self, name: str) -> list[float]:
        """Returns the statistic `name` of each of its episodes, or the return where they lack it. Empty: too few.

        Episodes that lack the statistic of the default are judged by whether their match was won, where that is known.
        """
        if not self.has_enough_episodes:
            return []
        stats = [episode[3] for episode in self.episodes]
        if name == PopulationConfig.pbt_target_objective and not any(name in each for each in stats):
            won = [each[WIN_RATE] for each in stats if WIN_RATE in each]
            if len(won) > 1:
                return won
        return [episode[3].get(name, episode[0]) for episode in self.episodes]

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
