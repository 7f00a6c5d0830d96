"""Matches of several agents, from the rows of a group: when one begins, how it ended, and who has won it.

A match is what the agents of one environment play until none of them is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sf.envs import Episode, StepResult
from sf.envs.groups.match_ends import MatchEnds
from sf.rollout.recorders import Recorder, Step
from sf.system.processes.reports import WIN_RATE

_ROUNDING = 1e-6  # of a sum of returns, relative to their sizes


class PlayedMatch(NamedTuple):
    """A match that is over. who: played each side that took part (a team, or an agent), a policy, or P + i for player i
    of the pool of a run with P policies. scores: of each side."""

    who: tuple[int, ...]
    scores: tuple[float, ...]


class Matches(Recorder):
    """Follows the matches of the E environments of a group.

    identity: [N] of `Assignment`, who plays each actor now. played: a list to which matches are added as they
    end, if somebody wants them.
    objective: the statistic of episodes that is an agent's score, added up over those of a side in a match. Where an
    episode of a match lacks it, such as that of a bot, scores of that match are returns.
    sides: see `sf.rollout.assignment.AssignmentRules`.
    """

    def __init__(
        self,
        num_agents: int,
        objective: str,
        identity: np.ndarray,
        played: list[PlayedMatch] | None,
        sides: Sequence[int] = (),
    ) -> None:
        num_envs = len(identity) // num_agents
        self._num_agents = num_agents
        self._objective = objective
        self._identity = identity
        self._all_played = played
        self._ends = MatchEnds(len(identity), num_agents)
        self._is_over = np.zeros(num_envs, bool)  # [E] and the next has not begun
        self._sides = sides or range(num_agents)
        # Of each environment, the episodes of each side, with who played it.
        self._played: list[dict[int, tuple[int, list[Episode]]]] = [{} for _ in range(num_envs)]

    def after_step(self, step: Step) -> None:
        played = self.ended(step.result, step.finished)
        if self._all_played is not None:
            self._all_played += played
        if step.result.first.any():
            step.begins = np.repeat(self.begins(step.result.first), self._num_agents)

    def ended(self, result: StepResult, episodes: Iterable[Episode]) -> list[PlayedMatch]:
        """Returns the matches between different ones that have ended with this step.

        Where an episode begins anew before its end, as after a fault, so does its match.
        """
        is_cut, is_over = self._ends.after_step(result)
        for env in np.flatnonzero(is_cut).tolist():
            self._played[env] = {}
        for episode in episodes:
            env, agent = divmod(episode.actor_idx, self._num_agents)
            side = self._sides[agent]
            self._played[env].setdefault(side, (int(self._identity[episode.actor_idx]), []))[1].append(episode)
        self._is_over |= is_over
        finished = []
        for env in np.flatnonzero(is_over).tolist():
            of_sides = [self._played[env][side] for side in sorted(self._played[env])]
            self._played[env] = {}
            if len({played_by for played_by, _ in of_sides}) > 1:
                who_played, all_episodes = zip(*of_sides, strict=True)
                finished.append(PlayedMatch(who_played, self._scores(all_episodes)))
        return finished

    def _scores(self, all_episodes: Iterable[Iterable[Episode]]) -> tuple[float, ...]:
        """Returns the score of each side of a match, from its episodes."""
        if all(self._objective in episode.stats for episodes in all_episodes for episode in episodes):
            return tuple(sum(float(episode.stats[self._objective]) for episode in own) for own in all_episodes)
        return tuple(sum(float(episode.episode_return) for episode in own) for own in all_episodes)

    def begins(self, first: np.ndarray) -> np.ndarray:
        """[E] bool: in which environments a match begins with the next row. first: [N] bool, of that row."""
        begins = self._is_over & first.reshape(-1, self._num_agents).any(axis=1)
        self._is_over &= ~begins
        return begins


class WinRates(Recorder):
    """Adds `win_rate` to episodes: 1 for a win, 0.5 for a draw, 0 for a defeat; against several policies, the mean.

    Only a match in which the returns of all agents add up to zero is won or lost. An environment where they once do not
    is about something else. Before one of its matches was won, it is not known: agents that share their rewards, and
    have none yet, have not played a draw.
    """

    def __init__(self, num_agents: int, policy: np.ndarray, sides: Sequence[int] = ()) -> None:
        """policy: [N] of `Assignment`, who plays each actor now. sides: see `AssignmentRules`."""
        self._num_agents = num_agents
        self._sides = sides or range(num_agents)
        self._policy = policy
        self._is_zero_sum: bool | None = None  # None: not known yet

    def after_step(self, step: Step) -> None:
        step.finished = self.add_to(step.finished)

    def add_to(self, episodes: Iterable[Episode]) -> list[Episode]:
        """Returns the episodes, with the statistic for those of a match that end in this step together.

        The score of a side is the sum of the returns of its agents. A policy that plays several sides of a match has
        the mean of their scores.
        """
        matches = defaultdict[int, list[Episode]](list)
        for episode in episodes:
            matches[episode.actor_idx // self._num_agents].append(episode)
        return [episode for match in matches.values() for episode in self._judged(match)]

    def _judged(self, match: list[Episode]) -> list[Episode]:
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
        of_sides = defaultdict[int, defaultdict[int, float]](lambda: defaultdict(float))  # by policy
        for episode in match:
            side = self._sides[episode.actor_idx % self._num_agents]
            of_sides[int(self._policy[episode.actor_idx])][side] += episode.episode_return
        if len(of_sides) == 1:
            return match
        scores = {policy_id: float(np.mean([*own.values()])) for policy_id, own in of_sides.items()}
        won = {policy_id: _share_beaten(policy_id, scores) for policy_id in scores}
        return [
            replace(episode, stats={**episode.stats, WIN_RATE: won[int(self._policy[episode.actor_idx])]})
            for episode in match
        ]


def _share_beaten(policy_id: int, scores: dict[int, float]) -> float:
    """Returns the share of the other policies whose score is lower. An equal score counts as half."""
    own = scores[policy_id]
    return float(np.mean([(own > other) + 0.5 * (own == other) for idx, other in scores.items() if idx != policy_id]))
