"""Decides which levels a policy is to play, by how much it has to learn there: prioritised level replay (Jiang et al.
2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from sf.config import LearnerConfig, SamplerConfig
from sf.learner.batches.batch import Batch
from sf.learner.loss.targets import make_targets
from sf.ranks.ranks import ALONE, Ranks
from sf.shared.levels import Levels


class LevelScores:
    """Keeps the scores of L levels for one policy, and says how probable each is by them.

    The score of a level is the mean absolute advantage in it, by GAE, as the policy was when it played (section 3.1,
    "L1 value loss"). The paper takes a whole episode. Here trajectories end within episodes, so the mean of each
    iteration moves the score by n / (n + T), for n steps in the level and trajectories of T steps.
    """

    def __init__(self, first: int, num_levels: int, temperature: float, staleness: float) -> None:
        """first: the lowest level. temperature, staleness: beta and rho of equations 3 to 5."""
        self._first, self._temperature, self._staleness = first, temperature, staleness
        self._scores = np.full(num_levels, np.nan)  # NaN: not played yet
        self._seen_at = np.zeros(num_levels, np.int64)  # how many episodes had begun in all when it was last seen
        self._num_episodes = 0

    @classmethod
    def of(cls, levels: Levels, config: SamplerConfig) -> LevelScores:
        return cls(levels.first, levels.num_levels, config.plr_temperature, config.plr_staleness)

    def look(self, config: LearnerConfig, batch: Batch, ranks: Ranks = ALONE) -> None:
        """Update the scores by the data of an iteration, of all ranks. config: as that iteration had it."""
        num_levels, known = len(self._scores), batch.without_last_step()  # whose values are all known
        advantage = make_targets(config, known, known.log_prob, batch.value).advantage
        level, size = (known.level - self._first)[known.valid], advantage[known.valid].abs()
        sums = torch.zeros(2, num_levels, dtype=torch.float64, device=size.device)
        sums[0].index_add_(0, level.long(), size.double())
        sums[1].index_add_(0, level.long(), torch.ones_like(size, dtype=torch.float64))
        totals, num_begun = ranks.totals(sums.cpu(), known.first[:-1].sum().double().cpu())
        total, count = totals.numpy()
        self._num_episodes += round(float(num_begun))
        seen = np.flatnonzero(count)
        self._seen_at[seen] = self._num_episodes
        mean, weight = total[seen] / count[seen], count[seen] / (count[seen] + len(batch.reward))
        before = np.where(np.isnan(self._scores[seen]), mean, self._scores[seen])
        self._scores[seen] = before + (mean - before) * weight

    def probabilities(self) -> np.ndarray:
        """Returns [L]: with the share of levels that have a score one of these by rank and staleness (equations 3 to
        5), else one of the others, all equally likely."""
        has_score = ~np.isnan(self._scores)
        found = np.full(len(has_score), 1.0 / len(has_score))
        if has_score.any():
            found[has_score] = has_score.mean() * self._replayed(self._scores[has_score], self._seen_at[has_score])
        return found

    def _replayed(self, scores: np.ndarray, seen_at: np.ndarray) -> np.ndarray:
        rank = np.empty(len(scores))
        rank[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        by_score = rank ** (-1.0 / self._temperature)
        ages = (self._num_episodes - seen_at).astype(np.float64)
        by_age = ages if ages.any() else np.ones(len(ages))
        return (1.0 - self._staleness) * by_score / by_score.sum() + self._staleness * by_age / by_age.sum()

    def metrics(self) -> dict[str, float]:
        """Returns the share of levels with a score, and how many equally likely ones would be as varied as those that
        are drawn now, by the entropy."""
        probabilities = self.probabilities()
        drawn = probabilities[probabilities > 0]
        return {
            "levels/seen_share": float(np.mean(~np.isnan(self._scores))),
            "levels/effective": float(np.exp(-np.sum(drawn * np.log(drawn)))),
        }

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint keeps."""
        scores = [None if np.isnan(score) else score for score in self._scores.tolist()]
        numbers = {"first": self._first, "num_episodes": self._num_episodes}
        return {**numbers, "scores": scores, "seen_at": self._seen_at.tolist()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned, for the levels that are in both runs. An empty one changes nothing."""
        if not state:
            return
        self._num_episodes = state["num_episodes"]
        last = min(self._first + len(self._scores), state["first"] + len(state["scores"]))
        for level in range(max(self._first, state["first"]), last):
            old, new = level - state["first"], level - self._first
            score = state["scores"][old]
            self._scores[new] = np.nan if score is None else score
            self._seen_at[new] = state["seen_at"][old]
