"""Matches of several agents, from the rows of a group: when one begins, and how it ended.

A match is what the agents of one environment play until none of them is left.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sf.envs import Episode, StepResult
from sf.envs.match_ends import MatchEnds
from sf.storage.match_journal import PlayedMatch


class Matches:
    """Follows the matches of the E environments of a group.

    objective: the statistic of episodes that is an agent's score, added up over those of a match. Where an episode of a
    match lacks it, such as that of a bot, scores of that match are returns.
    """

    def __init__(self, num_actors: int, num_agents: int, objective: str) -> None:
        num_envs = num_actors // num_agents
        self._num_agents = num_agents
        self._objective = objective
        self._ends = MatchEnds(num_actors, num_agents)
        self._is_over = np.zeros(num_envs, bool)  # [E] and the next has not begun
        # Of each environment, the episodes of each agent, with who played it.
        self._played: list[dict[int, tuple[int, list[Episode]]]] = [{} for _ in range(num_envs)]

    def after_step(self, result: StepResult, episodes: Iterable[Episode], who: np.ndarray) -> list[PlayedMatch]:
        """Returns the matches that have ended, between different ones. who: [N] that have played this step.

        Where an episode begins anew before its end, as after a fault, so does its match.
        """
        is_cut, is_over = self._ends.after_step(result)
        for env in np.flatnonzero(is_cut).tolist():
            self._played[env] = {}
        for episode in episodes:
            env, agent = divmod(episode.actor_idx, self._num_agents)
            self._played[env].setdefault(agent, (int(who[episode.actor_idx]), []))[1].append(episode)
        self._is_over |= is_over
        finished = []
        for env in np.flatnonzero(is_over).tolist():
            played_by_agent = [self._played[env][agent] for agent in sorted(self._played[env])]
            self._played[env] = {}
            if len({played_by for played_by, _ in played_by_agent}) > 1:
                who_played, all_episodes = zip(*played_by_agent, strict=True)
                finished.append(PlayedMatch(who_played, self._scores(all_episodes)))
        return finished

    def _scores(self, all_episodes: Iterable[Iterable[Episode]]) -> tuple[float, ...]:
        """Of each agent of a match, from its episodes."""
        if all(self._objective in episode.stats for episodes in all_episodes for episode in episodes):
            return tuple(sum(float(episode.stats[self._objective]) for episode in own) for own in all_episodes)
        return tuple(sum(float(episode.episode_return) for episode in own) for own in all_episodes)

    def begins(self, first: np.ndarray) -> np.ndarray:
        """[E] bool: in which environments a match begins with the next row. first: [N] bool, of that row."""
        begins = self._is_over & first.reshape(-1, self._num_agents).any(axis=1)
        self._is_over &= ~begins
        return begins
