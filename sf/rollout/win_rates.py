"""Who has won the matches of a group in which different policies met, as a statistic of their episodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sf.envs import Episode
from sf.processes.reports import WIN_RATE

_ROUNDING = 1e-6  # of a sum of returns, relative to their sizes


class WinRates:
    """Adds `win_rate` to episodes: 1 for a win, 0.5 for a draw, 0 for a defeat; against several policies, the mean.

    Only a match in which the returns of all agents add up to zero is won or lost. An environment where they once do not
    is about something else. Before one of its matches was won, it is not known: agents that share their rewards, and
    have none yet, have not played a draw.
    """

    def __init__(self, num_agents: int) -> None:
        self._num_agents = num_agents
        self._is_zero_sum: bool | None = None  # None: not known yet

    def add_to(self, episodes: Sequence[Episode], policy: np.ndarray) -> list[Episode]:
        """Returns the episodes, with the statistic for those of a match that end in this step together.

        policy: [N] that has played each actor. One that plays several agents of a match has the mean of their returns.
        """
        matches = defaultdict[int, list[Episode]](list)
        for episode in episodes:
            matches[episode.actor_idx // self._num_agents].append(episode)
        return [episode for match in matches.values() for episode in self._judged(match, policy)]

    def _judged(self, match: list[Episode], policy: np.ndarray) -> list[Episode]:
        if self._is_zero_sum is False or len(match) < self._num_agents:
            return match
        sizes = [abs(episode.episode_return) for episode in match]
        total = sum(episode.episode_return for episode in match)
        if abs(total) > _ROUNDING * sum(sizes):
            self._is_zero_sum = False
        elif any(sizes):
            self._is_zero_sum = True
        if not self._is_zero_sum:
            return match
        returns = defaultdict[int, list[float]](list)
        for episode in match:
            returns[int(policy[episode.actor_idx])].append(episode.episode_return)
        if len(returns) == 1:
            return match
        scores = {policy_id: float(np.mean(own)) for policy_id, own in returns.items()}
        won = {policy_id: _share_beaten(policy_id, scores) for policy_id in scores}
        return [
            replace(episode, stats={**episode.stats, WIN_RATE: won[int(policy[episode.actor_idx])]})
            for episode in match
        ]


def _share_beaten(policy_id: int, scores: dict[int, float]) -> float:
    """Of the other policies; the same score is half a win."""
    own = scores[policy_id]
    return float(np.mean([(own > other) + 0.5 * (own == other) for idx, other in scores.items() if idx != policy_id]))
