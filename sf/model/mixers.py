"""Value decomposition: the value of a team from one value for each of its agents.

The targets are the team's, so each agent's value learns the share that it contributes (Sunehag et al. 2018, VDN). With
policy gradients in place of Q-learning this is the value-decomposition actor-critic of Su et al. 2021.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.layers import orthogonal
from sf.model.teams import Teams

_WIDTH = 32  # of the mixture, as QMIX has it


class Mixer(nn.Module, ABC):
    """Mixes the values of the agents of each team. `head` scales the result, and takes the statistics of returns."""

    def __init__(self, teams: Sequence[int]) -> None:
        """teams: [A] of the agents of an environment; empty where no values are computed."""
        super().__init__()
        self.teams = Teams(teams)
        self.head = nn.Linear(1, 1)
        nn.init.ones_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, value: Tensor, features: Tensor, is_present: Tensor) -> Tensor:
        """The values of M rows, in which the A agents of an environment stand side by side -> those of their teams [M].

        value: [M] of each agent. features: [M, F] of the critic. is_present: [M] bool; agents that are absent have no
        part in the value of their team.
        """
        mixed = self.mix(value[:, None], features, is_present[:, None].to(value.dtype))  # [G, K, 1]
        team_value: Tensor = self.teams.of_agents(self.head(mixed)).squeeze(-1)
        return team_value

    @abstractmethod
    def mix(self, value: Tensor, features: Tensor, present: Tensor) -> Tensor:
        """value [M, 1], features [M, F], present [M, 1], 0 or 1 -> the values of the teams [G, K, 1]."""


class SumMixer(Mixer):
    """The sum of the agents' values (VDN, Sunehag et al. 2018, equation 1)."""

    def mix(self, value: Tensor, features: Tensor, present: Tensor) -> Tensor:
        return self.teams.sums(value * present)


class MonotonicMixer(Mixer):
    """A network of two layers, whose weights on the agents' values are never negative (QMIX, Rashid et al. 2018,
    section 4). Other networks compute these weights from what the critic sees.

    Each agent's weights come from its own features, and the rest from their mean over the team: so the order of agents
    does not matter.
    """

    def __init__(self, teams: Sequence[int], num_features: int) -> None:
        super().__init__(teams)
        self.inner_weight = orthogonal(nn.Linear(num_features, _WIDTH), 1.0)
        self.inner_bias = orthogonal(nn.Linear(num_features, _WIDTH), 1.0)
        self.outer_weight = orthogonal(nn.Linear(num_features, _WIDTH), 1.0)
        self.outer_bias = orthogonal(nn.Linear(num_features, 1), 1.0)

    def mix(self, value: Tensor, features: Tensor, present: Tensor) -> Tensor:
        of_team = self.teams.sums(features * present) / self.teams.sums(present).clamp(min=1.0)  # [G, K, F]
        weighted = self.inner_weight(features).abs() * value * present  # [M, W]
        inner = F.elu(self.teams.sums(weighted) + self.inner_bias(of_team))
        outer = (self.outer_weight(of_team).abs() * inner).mean(-1, keepdim=True)
        return outer + self.outer_bias(of_team)


def make_mixer(name: str, teams: Sequence[int], num_features: int) -> Mixer | None:
    """Returns the mixer of this name, or None for none."""
    if name == "none":
        return None
    return SumMixer(teams) if name == "sum" else MonotonicMixer(teams, num_features)
