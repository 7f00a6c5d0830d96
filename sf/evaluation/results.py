"""What an evaluation has found: the episodes that were played, and what they say of each policy."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sf.evaluation.play.episodes import Played
from sf.evaluation.statistics import Statistics, rate_statistics, statistics
from sf.metrics.task_scores import SCORE_MEAN, returns_of_tasks, task_scores

_WON = "won"
_ROUNDING = 1e-6  # of a sum of scores, relative to their sizes
_OF_ALL = (("return", "episode_return"), ("num_steps", "num_steps"), ("num_frames", "num_frames"))


def named_apart(name: str, taken: Container[str]) -> str:
    """The name under which an environment's own statistic is shown: with `stats/` before one that is taken."""
    return f"stats/{name}" if name in taken else name


class Result(NamedTuple):
    """Tells how a side of a policy fared against one of an opponent. points: 1 for a win, 0.5 for a draw, else 0."""

    match_idx: int
    side_idx: int  # of the policy: a team, or an agent where there are no teams
    points: float


@dataclass
class Evaluation:
    """Holds episodes in the order of matches. objective: the statistic that judges a policy; else the return does.

    sides: [A] of the agents of a match, see `sf.envs.teams.sides_of`; (): each agent is one.
    """

    objective: str
    episodes: list[Played] = field(default_factory=list)
    num_env_faults: int = 0
    remarks: dict[str, str] = field(default_factory=dict)  # of environments, by what they are about
    sides: Sequence[int] = ()

    def add(self, other: Evaluation) -> None:
        """Add another evaluation of the same policies, as of another task, with its matches behind those of this."""
        first = 1 + max((episode.match_idx for episode in self.episodes), default=-1)
        self.episodes += [replace(episode, match_idx=first + episode.match_idx) for episode in other.episodes]
        self.num_env_faults += other.num_env_faults
        self.remarks = {**other.remarks, **self.remarks}

    def statistics(self, policy_idx: int) -> dict[str, Statistics]:
        """Computes return, num_steps, num_frames and the environment's own statistics; none without an episode."""
        own = self._of(policy_idx)
        if not own:
            return {}
        values = {name: [(getattr(episode, field), episode.match_idx) for episode in own] for name, field in _OF_ALL}
        for name in sorted({name for episode in own for name in episode.stats}):
            known = [(episode.stats[name], episode.match_idx) for episode in own if name in episode.stats]
            values[named_apart(name, dict(_OF_ALL))] = known
        return {name: _statistics(name, *zip(*known, strict=True)) for name, known in values.items()}

    def task_scores(self, policy_idx: int) -> dict[str, float]:
        """Returns mean and median over several tasks, see `sf.metrics.task_scores`; empty where there are no scores."""
        return task_scores(episode.stats for episode in self._of(policy_idx))

    def return_of_task(self, policy_idx: int, task: str) -> float | None:
        """Returns the mean return at one of several tasks; None where the policy has no episode of it."""
        return returns_of_tasks(episode.stats for episode in self._of(policy_idx)).get(task)

    def score_of(self, policy_idx: int) -> float | None:
        """Mean of the objective, or over several tasks of their scores if no episode has it; None where the policy has
        no episode."""
        scores_of_tasks = self.task_scores(policy_idx)
        if scores_of_tasks and not any(self.objective in episode.stats for episode in self.episodes):
            return scores_of_tasks[SCORE_MEAN]
        score = self._judge()
        scores = [score(episode) for episode in self._of(policy_idx)]
        return float(np.mean(scores)) if scores else None

    def score_against(self, policy_idx: int, opponent_idx: int) -> Statistics | None:
        """Averages what each side of the policy scored in a match in which the opponent played, too, see
        `scores_of_matches`. None where they never met.
        """
        scores, match_idxs = [], []
        for match_idx, sides in self.scores_of_matches().items():
            for side_idx, (policy, score) in sides.items():
                others = {other for each, (other, _) in sides.items() if each != side_idx}
                if policy == policy_idx and opponent_idx in others:
                    scores.append(score)
                    match_idxs.append(match_idx)
        return statistics(scores, match_idxs) if scores else None

    def win_rate(self, policy_idx: int, *opponent_idxs: int) -> Statistics | None:
        """Computes the win rate of the policy, see `results_against`. None where they never met."""
        return win_rate(self.results_against(policy_idx, *opponent_idxs))

    @property
    def has_winners(self) -> bool:
        """Returns whether matches are won: agents score differently, by an objective that the environment reports, or
        by returns that add up to zero in each match. Other returns may be those of agents that help each other."""
        matches = [[score for _, score in agents.values()] for agents in self.scores_of_matches().values()]
        if all(len(set(scores)) == 1 for scores in matches):
            return False
        if all(self.objective in episode.stats for episode in self.episodes):
            return True
        return all(abs(sum(scores)) <= _ROUNDING * sum(map(abs, scores)) for scores in matches)

    def results_against(self, policy_idx: int, *opponent_idxs: int) -> list[Result]:
        """Returns the results of the policy against these opponents, or against all others if none is named.

        One for each two sides of theirs in a match: the higher score in it wins, see `scores_of_matches`.
        """
        return [
            Result(match_idx, side_idx, 0.5 + 0.5 * ((own > score) - (own < score)))
            for match_idx, sides in self.scores_of_matches().items()
            for side_idx, (own_policy, own) in sides.items()
            if own_policy == policy_idx
            for policy, score in sides.values()
            if policy != policy_idx and (not opponent_idxs or policy in opponent_idxs)
        ]

    def share_won(self, policy_idx: int, *opponent_idxs: int) -> Statistics | None:
        """`win_rate` against these, or all others; where it met none, of its episodes' statistic `won`, with which an
        environment says who has beaten the players that are part of it. None where there is neither.
        """
        return self.win_rate(policy_idx, *opponent_idxs) or self.statistics(policy_idx).get(_WON)

    def scores_of_matches(self) -> dict[int, dict[int, tuple[int, float]]]:
        """Returns by match and side the policy that played it, and its objective, added up over its episodes."""
        matches: dict[int, dict[int, tuple[int, float]]] = {}
        score = self._judge()
        for episode in self.episodes:
            of_match = matches.setdefault(episode.match_idx, {})
            side_idx = self.sides[episode.agent_idx] if self.sides else episode.agent_idx
            _, before = of_match.get(side_idx, (episode.policy_idx, 0.0))
            of_match[side_idx] = episode.policy_idx, before + score(episode)
        return matches

    def _judge(self) -> Callable[[Played], float]:
        """Gives the objective of an episode; its return in a match of which an episode, as of a bot, lacks it."""
        by_return = {episode.match_idx for episode in self.episodes if self.objective not in episode.stats}

        def score(episode: Played) -> float:
            return episode.episode_return if episode.match_idx in by_return else episode.stats[self.objective]

        return score

    def _of(self, policy_idx: int) -> list[Played]:
        return [episode for episode in self.episodes if episode.policy_idx == policy_idx]


def win_rate(results: Sequence[Result]) -> Statistics | None:
    """Returns None without a result."""
    return rate_statistics([r.points for r in results], [r.match_idx for r in results]) if results else None


def _statistics(name: str, values: Sequence[float], match_idxs: Sequence[int]) -> Statistics:
    is_rate = name == _WON and min(values) >= 0.0 and max(values) <= 1.0  # a user's environment may count by that name
    return rate_statistics(values, match_idxs) if is_rate else statistics(values, match_idxs)
