"""Finds where the matches of a group end. A match is what the agents of one environment play until none is left."""

from __future__ import annotations

import numpy as np

from sf.envs.group import StepResult


class MatchEnds:
    """Follows the rows of E environments with A agents each.

    first: [N] bool, of the rows that are acted on. in_episode: [N] bool, whose episode goes on, or who joins a match.
    """

    def __init__(self, num_actors: int, num_agents: int) -> None:
        self._num_agents = num_agents
        self.first = np.ones(num_actors, bool)
        self.in_episode = np.zeros(num_actors, bool)

    def after_step(self, result: StepResult) -> tuple[np.ndarray, np.ndarray]:
        """Returns [E] bool twice: where a match begins anew before its end, as after a fault, and where one is over."""
        is_cut = self._any_agent(result.cut(self.in_episode))
        # After a start or a fault all rows are first. Those of an agent that is absent are not valid.
        played = self.in_episode | self.first & result.valid
        goes_on = played & ~(result.terminated | result.truncated) | result.joined
        is_over = self._any_agent(played) & ~self._any_agent(goes_on)
        self.in_episode = goes_on & (result.joined | ~result.first)
        self.first = result.first.copy()
        return is_cut, is_over

    def _any_agent(self, of_actors: np.ndarray) -> np.ndarray:
        return np.asarray(of_actors.reshape(-1, self._num_agents).any(axis=1))
