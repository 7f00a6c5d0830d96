"""What is below the heads of a network: encoders of the observations, and a recurrent core."""

from __future__ import annotations

import math
from collections.abc import Mapping

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.observations import is_image
from sf.model.cores.choice import make_core
from sf.model.encoders.blocks import Convolutional, in_parts
from sf.model.encoders.choice import build_encoder
from sf.model.layers import activation, compute_dtype, orthogonal

Features = tuple[Tensor, ...]
"""[N, F] of each tower, between its encoders and its core."""


class Trunk(nn.Module):
    """What is below the heads: a tower for both, or one each. The state is the actor's, then the critic's."""

    def __init__(self, config: ModelConfig, boxes: dict[str, gym.spaces.Box], names: dict[str, str]) -> None:
        super().__init__()
        self.actor = Tower(config, boxes, names)
        self.critic = None if config.share_critic else Tower(config, boxes, names)
        self.out_size = self.actor.out_size
        self.state_size = self.actor.state_size * (1 if config.share_critic else 2)

    def encode(self, obs: Mapping[str, Tensor]) -> Features:
        """Observations {key: [N, ...]} -> what each tower makes of them, [N, F]."""
        return tuple(tower.encode(obs) for tower in (self.actor, self.critic) if tower is not None)

    def step(self, features: Features, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features [N, F] of actor and critic, and the next state [N, S]."""
        if self.critic is None:
            out, next_state = self.actor.step(features[0], state, first)
            return out, out, next_state
        actor_state, critic_state = state.chunk(2, dim=-1)
        actor, actor_state = self.actor.step(features[0], actor_state, first)
        critic, critic_state = self.critic.step(features[1], critic_state, first)
        return actor, critic, torch.cat((actor_state, critic_state), dim=-1)

    def unroll(self, features: Features, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Features of T x B observations, first [T, B] -> features [T x B, F] of actor and critic."""
        if self.critic is None:
            out = self.actor.unroll(features[0], state, first)
            return out, out
        actor_state, critic_state = state.chunk(2, dim=-1)
        return self.actor.unroll(features[0], actor_state, first), self.critic.unroll(features[1], critic_state, first)


class Tower(nn.Module):
    """An encoder for each observation, side by side, and the core.

    An `Identity` is one more input of each encoder of vectors. Without one, a layer joins it with all features. With
    `core_skip`, what goes into the core stands before what comes out of it.
    """

    def __init__(self, config: ModelConfig, boxes: dict[str, gym.spaces.Box], names: dict[str, str]) -> None:
        """names: of the encoder of each observation."""
        super().__init__()
        self.as_they_are = {key for key, box in boxes.items() if is_image(box) or names[key] == "symbols"}
        identities = {key: box for key, box in boxes.items() if isinstance(box, Identity)}
        if len(identities) == len(boxes):  # nothing to join them with
            identities = {}
        self.identities, num_identities = list(identities), sum(box.shape[0] for box in identities.values())
        boxes = {key: box for key, box in boxes.items() if key not in identities}
        self.joined = {key for key, box in boxes.items() if identities and names[key] == "mlp" and not is_image(box)}
        spaces = {key: _widened(box, num_identities) if key in self.joined else box for key, box in boxes.items()}
        encoders = {key: build_encoder(names[key], space, config) for key, space in spaces.items()}
        # Not a ModuleDict: it does not take every key (some are names of its methods).
        self.keys, self.encoders = list(encoders), nn.ModuleList(encoders.values())
        self.out_size: int = sum(encoder.out_size for encoder in encoders.values())
        self.join: nn.Sequential | None = None
        if identities and not self.joined:
            layer = orthogonal(nn.Linear(self.out_size + num_identities, self.out_size))
            self.join = nn.Sequential(layer, activation(config.nonlinearity))
        self.core = make_core(config, self.out_size)
        if self.core is not None:
            self.out_size = config.rnn_size + (self.out_size if config.core_skip else 0)
        self.has_skip = self.core is not None and config.core_skip
        self.state_size = self.core.state_size if self.core else 0

    def step(self, features: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        if not self.core:
            return features, state
        out, next_state = self.core.step(features, state, first)
        return self._beside(features, out), next_state

    def unroll(self, features: Tensor, state: Tensor, first: Tensor) -> Tensor:
        if not self.core:
            return features
        out = self.core.unroll(features.unflatten(0, first.shape), state, first).flatten(0, 1)
        return self._beside(features, out)

    def encode(self, obs: Mapping[str, Tensor]) -> Tensor:
        features = []
        who = [obs[key] for key in self.identities]  # each [N, n]
        for key, encoder in zip(self.keys, self.encoders, strict=True):
            x, weight = obs[key], next(encoder.parameters(), None)
            if key not in self.as_they_are and weight is not None:
                x = x.to(compute_dtype(weight))
            if key in self.joined:
                x = torch.cat([x.flatten(1), *(part.to(x.dtype) for part in who)], dim=-1)
            features.append(encoder(x) if isinstance(encoder, Convolutional) else in_parts(encoder, x))
        if self.join is not None:
            dtype = compute_dtype(next(self.join.parameters()))
            joined: Tensor = self.join(torch.cat([part.to(dtype) for part in (*features, *who)], dim=-1))
            return joined
        return features[0] if len(features) == 1 else torch.cat(features, dim=-1)

    def _beside(self, features: Tensor, out: Tensor) -> Tensor:
        """Features [N, F] and what the core made of them [N, H] -> what the heads read."""
        return torch.cat((features.to(out.dtype), out), dim=-1) if self.has_skip else out


def _widened(box: gym.spaces.Box, num_more: int) -> gym.spaces.Box:
    """Returns the space of a flat observation with more numbers behind it."""
    return gym.spaces.Box(-math.inf, math.inf, (math.prod(box.shape) + num_more,), np.float32)
