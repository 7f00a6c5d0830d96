"""The network: encoders, an optional recurrent core, and the heads of the policy and the value.

Policy workers call `step`, one step of N actors; the learner calls `unroll`, whole trajectories. Both compute
the same function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, cast

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.clock import CLOCK
from sf.envs.errors import UsageError
from sf.envs.spaces.actions import MASKS, ActionSpec
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.observations import is_image
from sf.model.distributions import ActionMask, ContinuousMask
from sf.model.encoders.blocks import Convolutional, in_parts
from sf.model.encoders.choice import NOT_NORMALISED, build_encoder, encoder_names
from sf.model.layers import activation, compute_dtype, orthogonal
from sf.model.normalizers import (
    NoReturnNormalizer,
    ObsNormalizer,
    ReturnNormalizer,
    SymlogReturns,
    ValueNorm,
    VectorNormalizer,
)
from sf.model.recurrent.gru import GRU
from sf.model.recurrent.lstm import LSTM
from sf.model.registry import register_model

POLICY_GAIN = 0.01  # the first policy is close to uniform (Andrychowicz et al. 2021)

Features = tuple[Tensor, ...]
"""[N, F] of each tower, between its encoders and its core."""


class StepOutput(NamedTuple):
    params: Tensor  # [N, P] float32, see sf.model.distributions
    value: Tensor  # [N] float32, in the scale of returns
    state: Tensor  # [N, S] float32


class UnrollOutput(NamedTuple):
    params: Tensor  # [T, B, P] float32
    value: Tensor  # [T+1, B] float32, in the critic's scale: `value_norm.denormalize` gives returns


@register_model("actor_critic")
class ActorCritic(nn.Module):
    """Actor and critic, on one trunk or on one each.

    `trunk` may be held in bfloat16; everything else (heads, statistics) stays in float32. `value_norm` goes
    between the scale of returns and that of the critic.
    """

    def __init__(self, config: ModelConfig, obs_space: gym.spaces.Dict, action_spec: ActionSpec) -> None:
        """Raises UsageError for an action mask that does not fit, or where no number is left for the network to see."""
        super().__init__()
        boxes = cast("dict[str, gym.spaces.Box]", dict(obs_space.items()))
        self._action_mask = ActionMask(obs_space, action_spec)
        self._continuous_mask = ContinuousMask(obs_space)
        for mask in MASKS:  # what is allowed is no input: the rest of the observation says why
            boxes.pop(mask, None)
        if config.critic_clock is True:
            boxes.pop(CLOCK, None)
        _require_something_to_see(obs_space, boxes)
        encoders = encoder_names(config.encoder, boxes, config.any_planes, config.float_planes)
        numbers = {key: box for key, box in boxes.items() if not _stays_as_it_is(box, encoders[key])}
        self.obs_norm = ObsNormalizer(numbers if config.normalize_input else {})
        self.trunk = _Trunk(config, boxes, encoders)
        self.state_size = self.trunk.state_size
        self._num_logits = sum(action_spec.discrete_sizes)
        self.policy_head = orthogonal(
            nn.Linear(self.trunk.out_size, self._num_logits + action_spec.num_continuous), POLICY_GAIN
        )
        self.log_stddev = _initial_log_stddev(config, action_spec.num_continuous)
        has_clock = config.critic_clock is True
        self.critic_clock = CriticClock(self.trunk.out_size, config.nonlinearity) if has_clock else None
        self.value_norm = _value_norm(config)
        self.value_head = orthogonal(nn.Linear(self.trunk.out_size, 1), 1.0)

    def step(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> StepOutput:
        """One step of N actors.

        obs: {key: [N, ...]}; state: [N, S] float32; first: [N] bool, where the state is zeroed before use.
        """
        actor, critic, next_state = self.trunk.step(self.trunk.encode(self._normal(obs)), state, first)
        params, value = self._heads(actor, critic, obs)
        return StepOutput(params, self.value_norm.denormalize(value), next_state)

    def unroll(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> UnrollOutput:
        """T steps of B trajectories, and the bootstrap value.

        obs: {key: [T+1, B, ...]}; state: [B, S] float32, before row 0; first: [T+1, B] bool, where
        the state is zeroed before use.
        """
        flat_obs = {key: value.flatten(0, 1) for key, value in obs.items()}  # [(T+1) x B, ...]
        actor, critic = self.trunk.unroll(self.trunk.encode(self._normal(flat_obs)), state, first)
        params, value = self._heads(actor, critic, flat_obs)
        return UnrollOutput(params.unflatten(0, first.shape)[:-1], value.view(first.shape))

    def update_normalizers(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} where `mask` [T, B] holds. Only the learner calls this."""
        self.obs_norm.update(obs, mask)
        if self.critic_clock is not None:
            self.critic_clock.update(obs, mask)

    def update_value_norm(self, returns: Tensor, mask: Tensor) -> None:
        """Merge value targets [T, B] where `mask` holds; predictions stay. Only the learner calls this."""
        self.value_norm.update(returns, mask, self.value_head)

    def _normal(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        weight = next(self.trunk.parameters(), self.policy_head.weight)
        return self.obs_norm(obs, compute_dtype(weight))

    def _heads(self, actor: Tensor, critic: Tensor, obs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Features [M, F] of each, and what they were made from {key: [M, ...]} -> params [M, P], value [M].

        In the dtype of the heads, float32, also under autocast: log-probabilities need its digits.
        """
        with torch.autocast(actor.device.type, enabled=False):
            dtype = self.policy_head.weight.dtype
            params = self.policy_head(actor.to(dtype))
            if self._action_mask.is_there:
                logits = self._action_mask(params[:, : self._num_logits], obs)
                params = torch.cat((logits, params[:, self._num_logits :]), dim=-1)
            if len(self.log_stddev):
                log_stddev = self.log_stddev.expand(params.shape[0], -1)
                if self._continuous_mask.is_there:
                    mean, log_stddev = self._continuous_mask(params[:, self._num_logits :], log_stddev, obs)
                    params = torch.cat((params[:, : self._num_logits], mean), dim=-1)
                params = torch.cat((params, log_stddev), dim=-1)
            critic = critic.to(dtype)
            if self.critic_clock is not None:
                critic = self.critic_clock(critic, obs)
            return params, self.value_head(critic).squeeze(-1)


def _require_something_to_see(obs_space: gym.spaces.Dict, boxes: Mapping[str, gym.spaces.Box]) -> None:
    """boxes: what the network sees."""
    if not any(math.prod(box.shape) for box in boxes.values()):
        names = [key for key in obs_space if key != CLOCK] or [CLOCK]  # that one was put there by the trainer
        raise UsageError(
            f"the observation has only {' and '.join(map(repr, names))}, which gives the network no number to read: "
            "add what the choice of an action depends on"
        )


def _stays_as_it_is(box: gym.spaces.Box, encoder: str) -> bool:
    """Returns whether an observation is not normalised."""
    return isinstance(box, Identity) or encoder in NOT_NORMALISED


def _initial_log_stddev(config: ModelConfig, num_continuous: int) -> nn.Parameter:
    stddev = config.initial_stddev
    if stddev == "auto":
        stddev = max(1, num_continuous) ** -0.5
    return nn.Parameter(torch.full((num_continuous,), math.log(stddev)), requires_grad=num_continuous > 0)


def _value_norm(config: ModelConfig) -> ValueNorm:
    if config.value_scale == "symlog":
        return SymlogReturns()
    return ReturnNormalizer() if config.normalize_returns else NoReturnNormalizer()


class _Trunk(nn.Module):
    """What is below the heads: a tower for both, or one each. The state is the actor's, then the critic's."""

    def __init__(self, config: ModelConfig, boxes: dict[str, gym.spaces.Box], names: dict[str, str]) -> None:
        super().__init__()
        self.actor = _Tower(config, boxes, names)
        self.critic = None if config.share_critic else _Tower(config, boxes, names)
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


class _Tower(nn.Module):
    """An encoder for each observation, side by side, and the core.

    An `Identity` is one more input of each encoder of vectors. Without one, a layer joins it with all features.
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
        self.core: GRU | LSTM | None = None
        if config.core != "none":
            self.core = (GRU if config.core == "gru" else LSTM)(self.out_size, config.rnn_size)
            self.out_size = config.rnn_size
        self.state_size = self.core.state_size if self.core else 0

    def step(self, features: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        return self.core.step(features, state, first) if self.core else (features, state)

    def unroll(self, features: Tensor, state: Tensor, first: Tensor) -> Tensor:
        if not self.core:
            return features
        return self.core.unroll(features.unflatten(0, first.shape), state, first).flatten(0, 1)

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


def _widened(box: gym.spaces.Box, num_more: int) -> gym.spaces.Box:
    """Returns the space of a flat observation with more numbers behind it."""
    return gym.spaces.Box(-math.inf, math.inf, (math.prod(box.shape) + num_more,), np.float32)


class CriticClock(nn.Module):
    """One layer that joins the critic's features with the time: its value depends on how many steps the episode has
    lasted, and the policy does not.

    The critic knows more than the policy as in asymmetric actor-critic (Pinto et al. 2018); that it is the time follows
    Pardo et al. 2018, for tasks that end by a time limit.
    """

    def __init__(self, num_features: int, nonlinearity: str) -> None:
        super().__init__()
        self.norm = VectorNormalizer((1,))
        self.layer = orthogonal(nn.Linear(num_features + 1, num_features))
        self.activation = activation(nonlinearity)

    def forward(self, features: Tensor, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [M, F] and observations {key: [M, ...]} -> [M, F]. Where nobody counts, it is time 0."""
        clock = obs.get(CLOCK)
        if clock is None:
            clock = features.new_zeros(features.shape[0], 1)
        time = self.norm(clock, torch.float32).to(features.dtype)
        joined: Tensor = self.activation(self.layer(torch.cat((features, time), dim=-1)))
        return joined

    def update(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} where `mask` [T, B] holds."""
        self.norm.update(obs[CLOCK].flatten(0, 1), mask.flatten())
