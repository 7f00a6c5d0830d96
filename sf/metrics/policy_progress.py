"""The progress of one policy: its latest episodes, its training, and the last decision of evolution."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from sf.config.flags.population import PopulationConfig
from sf.metrics.latest_episodes import EndedEpisode, LatestEpisodes
from sf.metrics.task_scores import SCORE_MEAN, capped_scores, returns_of_tasks, task_scores
from sf.storage.run_records import enough_episodes
from sf.system.processes.reports import WIN_RATE


@dataclass(frozen=True)
class PolicyEvent:
    """A decision over a policy, and the env steps that it had trained on."""

    what: str
    env_steps: int


class PolicyProgress:
    """The progress of one policy. latest: the episodes of all policies."""

    def __init__(self, policy_id: int, latest: LatestEpisodes, stats_avg: int) -> None:
        self._policy_id = policy_id
        self._latest = latest
        self._stats_avg = stats_avg
        self._since = float("-inf")  # by time.monotonic(): episodes that began before are those of an earlier self
        # By time.monotonic(): from when on episodes begin with the last options of the environment. Those before decide
        # about nothing: they are easier, or harder.
        self.judged_since = float("-inf")
        self.env_steps = 0  # that its learner has taken
        self.train: dict[str, float] = {}  # the latest metrics of its learner
        self.last_event: PolicyEvent | None = None  # the last decision over its weights

    def note_order(self, copies: int | None, begins_anew: bool = False) -> None:
        """Something was decided over the policy. copies: the policy whose weights it takes over."""
        what = "begun anew" if begins_anew else "mutated" if copies is None else f"copied {copies}"
        self.last_event = PolicyEvent(what, self.env_steps)

    def begin_anew(self) -> None:
        """It has other weights: no episode that is under way counts, nor any before."""
        self._since = time.monotonic()

    @property
    def num_waited_for(self) -> int:
        """Actors that have yet to end an episode since the policy is what it is. Until then it has no score."""
        return self._latest.num_waited_for(self._since)

    @property
    def episodes(self) -> list[EndedEpisode]:
        """Returns its latest `stats_avg` or some more, see `LatestEpisodes`; empty while an actor is waited for."""
        return self._latest.of(self._policy_id, self._since)

    @property
    def judged_episodes(self) -> list[EndedEpisode]:
        """Returns those of `episodes` that may decide about the policy."""
        return self._latest.of(self._policy_id, max(self._since, self.judged_since))

    @property
    def has_enough_episodes(self) -> bool:
        """Returns whether there are enough for their mean to be reported."""
        return len(self.episodes) >= enough_episodes(self._stats_avg)

    def objective(self, name: str) -> float | None:
        """Mean of `objective_values`; None: too few episodes.

        Where these are the scores of several tasks, each task counts alike.
        """
        values = self.objective_values(name)
        if values and self._is_by_score(name):
            return task_scores(episode.stats for episode in self.judged_episodes)[SCORE_MEAN]
        return float(np.mean(values)) if values else None

    def objective_values(self, name: str) -> list[float]:
        """Returns the statistic `name` of each of its episodes, or the return where they lack it. Empty: too few.

        Episodes that lack the statistic are judged by the normalised score of their task, where that is known; those
        that lack that of the default, by whether their match was won.
        """
        episodes = self.judged_episodes
        if len(episodes) < enough_episodes(self._stats_avg):
            return []
        if self._is_by_score(name):
            return capped_scores(episode.stats for episode in episodes)
        if name == PopulationConfig.pbt_target_objective and not any(name in each.stats for each in episodes):
            won = [each.stats[WIN_RATE] for each in episodes if WIN_RATE in each.stats]
            if len(won) > 1:
                return won
        return [each.stats.get(name, each.episode_return) for each in episodes]

    def return_of_task(self, name: str) -> float | None:
        """Returns the mean return of a task; None: too few episodes."""
        if not self.has_enough_episodes:
            return None
        return returns_of_tasks(episode.stats for episode in self.judged_episodes).get(name)

    def _is_by_score(self, objective: str) -> bool:
        """Returns whether episodes lack the objective, and have the scores of tasks."""
        stats = [episode.stats for episode in self.judged_episodes]
        return bool(capped_scores(stats)) and not any(objective in each for each in stats)

    def means(self) -> dict[str, Any]:
        """Returns the means of its latest episodes, and of its training."""
        return {**episode_means(self.episodes), **{f"train/{name}": value for name, value in self.train.items()}}


def episode_means(episodes: Collection[EndedEpisode]) -> dict[str, Any]:
    """Over finished episodes: return, steps, frames, stats."""
    if not episodes:
        return {"mean_return": None, "mean_episode_steps": None, "episodes_in_mean": 0}
    returns = [episode.episode_return for episode in episodes]
    means = {
        "mean_return": float(np.mean(returns)),
        "std_return": float(np.std(returns)),
        "min_return": float(np.min(returns)),
        "max_return": float(np.max(returns)),
        "mean_episode_steps": float(np.mean([episode.num_steps for episode in episodes])),
        "mean_episode_frames": float(np.mean([episode.num_frames for episode in episodes])),
        "episodes_in_mean": len(episodes),
    }
    for name in sorted({name for episode in episodes for name in episode.stats}):
        means[f"stats/{name}"] = float(np.mean([each.stats[name] for each in episodes if name in each.stats]))
    scores = task_scores(episode.stats for episode in episodes)
    return means | {f"stats/{name}": score for name, score in scores.items()}
