"""Sums over the teams of an environment, of rows in which its agents stand side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Teams:
    """The teams of the A agents of an environment. Sums, without products of matrices, which are slow where they are
    as small as a team."""

    def __init__(self, teams: Sequence[int]) -> None:
        """teams: [A], any numbers; empty where nothing is summed."""
        numbers = sorted(set(teams))
        self.num_agents = len(teams)
        self._of_agents = [numbers.index(team) for team in teams]  # [A]
        self._members = [[n for n, own in enumerate(teams) if own == team] for team in numbers]

    def sums(self, rows: Tensor) -> Tensor:
        """[G x A, ...] -> [G, K, ...], the sums over the agents of each team."""
        groups = rows.unflatten(0, (-1, self.num_agents))
        if len(self._members) == 1:
            return groups.sum(1, keepdim=True)
        return torch.stack([groups[:, members].sum(1) for members in self._members], dim=1)

    def of_agents(self, of_teams: Tensor) -> Tensor:
        """[G, K, ...] -> [G x A, ...], what belongs to the team of each agent."""
        if len(self._members) == 1:
            return of_teams.expand(-1, self.num_agents, *of_teams.shape[2:]).flatten(0, 1)
        return of_teams[:, self._of_agents].flatten(0, 1)
