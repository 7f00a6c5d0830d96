"""What the critic sees beyond the observation of its agent, and the actor does not.

That is the observations of its team or of all agents (Lowe et al. 2017, MADDPG; Yu et al. 2022, MAPPO), the state of
the environment, or keys of the observation that are for the critic alone (Pinto et al. 2018, asymmetric actor-critic).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import gymnasium as gym
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.config.flags.model import is_hidden
from sf.envs.added.central_state import StateShare
from sf.envs.added.clock import CENTRAL_STATE
from sf.model.encoders.choice import NOT_NORMALISED, encoder_names
from sf.model.layers import activation, compute_dtype, orthogonal
from sf.model.normalizers import ObsNormalizer
from sf.model.teams import Teams
from sf.model.trunk import Tower

CENTRAL_PARTS = ("central_critic.", "mixer.")
"""What the names of weights begin with that acting does not need, see `sf.model.actor_critic.ActorCritic`."""


def private_keys(config: ModelConfig, keys: Iterable[str]) -> list[str]:
    """Returns the keys of an observation that the critic alone sees, but for the clock."""
    return [key for key in keys if key == CENTRAL_STATE or is_hidden(key, config.critic_obs)]


def is_present(obs: Mapping[str, Tensor], keys: Iterable[str]) -> Tensor:
    """Returns [M] bool: which agents play, since those that are absent have observations of zeros.

    obs: {key: [M, ...]}, as it came. keys: those that agents see.
    """
    return torch.stack([(obs[key] != 0).flatten(1).any(1) for key in keys]).any(0)


class CentralCritic(nn.Module):
    """Joins the features of a critic with those of what only it sees, by one layer.

    The observations of other agents go through an encoder that all agents share, and their means are taken: over the
    agent's team, and, with `--critic all`, over the other teams. So the order of agents does not matter, nor how many
    there are. An agent that is absent, whose observation is all zeros, counts in no mean.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_features: int,
        seen: Mapping[str, gym.spaces.Box],
        seen_names: Mapping[str, str],
        private: Mapping[str, gym.spaces.Box],
        teams: Sequence[int],
    ) -> None:
        """num_features: F of the critic. seen: what each agent sees; seen_names: the encoder of each. private: what the
        critic alone sees. teams: [A] of the agents of an environment; empty where values are not computed."""
        super().__init__()
        without_core = replace(config, core="none")
        self._teams = Teams(teams)
        self._share: StateShare | None = None
        spaces = dict(private)
        if CENTRAL_STATE in spaces:
            self._share = cast("StateShare", spaces[CENTRAL_STATE])
            spaces[CENTRAL_STATE] = self._share.whole
        self._private = list(spaces)
        names = encoder_names("auto", spaces, config.any_planes, config.float_planes)
        numbers = {key: box for key, box in spaces.items() if names[key] not in NOT_NORMALISED}
        self.norm = ObsNormalizer(numbers if config.normalize_input else {})
        self.private = Tower(without_core, spaces, names) if spaces else None
        self.others = Tower(without_core, dict(seen), dict(seen_names)) if config.critic in ("team", "all") else None
        self._sees_rivals = config.critic == "all"
        size = num_features + (self.private.out_size if self.private else 0)
        if self.others is not None:
            size += self.others.out_size * (1 + self._sees_rivals)
        self.layer = orthogonal(nn.Linear(size, num_features))
        self.activation = activation(config.nonlinearity)

    def forward(self, features: Tensor, seen: Tensor) -> Tensor:
        """Features [M, F] of the critic and what `encode` returned for the same rows -> [M, F]."""
        joined: Tensor = self.activation(self.layer(torch.cat((features, seen.to(features.dtype)), dim=-1)))
        return joined

    def encode(self, obs: Mapping[str, Tensor], normal: Mapping[str, Tensor]) -> Tensor:
        """What only the critic sees, of M rows, in which the A agents of an environment stand side by side -> [M, K].

        obs: {key: [M, ...]}, as it came. normal: the same, where what each agent sees is normalised.
        """
        parts = []
        if self.private is not None:
            private = self._whole(obs)
            weight = next(self.private.parameters(), self.layer.weight)
            encoded = self.private.encode(self.norm(private, compute_dtype(weight)))
            parts.append(encoded)
        if self.others is not None:
            parts += self._means(self.others.encode(normal), is_present(obs, self.others.keys))
        return torch.cat([part.float() for part in parts], dim=-1)

    @torch.no_grad()
    def update(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} where `mask` [T, B] holds."""
        if self.private is not None:
            flat = {key: obs[key].flatten(0, 1) for key in self._private}
            whole = {key: value[:, None] for key, value in self._whole(flat).items()}
            self.norm.update(whole, mask.flatten()[:, None])

    def _whole(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the private observations {key: [M, ...]}, with the state of the environment from all its shares."""
        private = {key: obs[key] for key in self._private}
        if self._share is not None:
            state = self._share.joined(private[CENTRAL_STATE])
            private[CENTRAL_STATE] = state.repeat_interleave(self._share.num_agents, dim=0)
        return private

    def _means(self, encoded: Tensor, is_present: Tensor) -> list[Tensor]:
        """Means over the team, and over the other teams where the critic sees them. Each [M, J].

        encoded: [M, J] of each agent. is_present: [M] bool.
        """
        teams, present = self._teams, is_present.float()
        count = teams.sums(present[:, None])  # [G, K, 1]
        total = teams.sums(encoded.float() * present[:, None])  # [G, K, J]
        sides = [(total, count)]
        if self._sees_rivals:
            sides.append((total.sum(1, keepdim=True) - total, count.sum(1, keepdim=True) - count))
        return [teams.of_agents(of_side / number.clamp(min=1.0)) for of_side, number in sides]
