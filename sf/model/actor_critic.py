"""The network: encoders, an optional recurrent core, and the heads of the policy and the value.

Policy workers call `step`, one step of N actors; the learner calls `unroll`, whole trajectories. Both compute the
same function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import gymnasium as gym
import torch
from torch import Tensor, nn

from envs.actions import ActionSpec
from sf.config import ModelConfig
from sf.model.gru import GRU
from sf.model.images import is_image
from sf.model.layers import orthogonal
from sf.model.lstm import LSTM
from sf.model.normalizers import NoReturnNormalizer, ObsNormalizer, ReturnNormalizer
from sf.model.registry import build_encoder, register_model

POLICY_GAIN = 0.01  # the first policy is close to uniform (Andrychowicz et al. 2021)


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

    `trunk` may be held in bfloat16; everything else (heads, statistics) stays in float32. `value_norm` goes between
    the scale of returns and that of the critic.
    """

    def __init__(self, config: ModelConfig, obs_space: gym.spaces.Dict, action_spec: ActionSpec) -> None:
        super().__init__()
        vectors = [key for key, space in obs_space.items() if not is_image(space)]
        # A ModuleDict would not take every key: some are names of its methods.
        self.normalized_keys = vectors if config.normalize_input else []
        self.obs_norms = nn.ModuleList(ObsNormalizer(obs_space[key].shape) for key in self.normalized_keys)
        self.trunk = nn.ModuleList(_Tower(config, obs_space) for _ in range(1 if config.share_critic else 2))
        self.state_size: int = sum(tower.state_size for tower in self.trunk)
        features = self.trunk[0].out_size
        num_logits = sum(action_spec.discrete_sizes)
        self.policy_head = orthogonal(
            nn.Linear(features, num_logits + action_spec.num_continuous), POLICY_GAIN
        )
        self.log_stddev = nn.Parameter(
            torch.full((action_spec.num_continuous,), math.log(config.initial_stddev))
        )
        self.value_head = orthogonal(nn.Linear(features, 1), 1.0)
        self.value_norm = ReturnNormalizer() if config.normalize_returns else NoReturnNormalizer()

    def step(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> StepOutput:
        """obs {key: [N, ...]}, state [N, S] float32, first [N] bool: the state is zeroed there before it is read."""
        obs = self._normalized(obs)
        states = state.split([tower.state_size for tower in self.trunk], dim=-1)
        outs, next_states = zip(
            *(tower.step(obs, part, first) for tower, part in zip(self.trunk, states, strict=True)),
            strict=True,
        )
        params, value = self._heads(outs[0], outs[-1])
        next_state = next_states[0] if len(next_states) == 1 else torch.cat(next_states, dim=-1)
        return StepOutput(params, self.value_norm.denormalize(value), next_state)

    def unroll(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> UnrollOutput:
        """obs {key: [T+1, B, ...]}, state [B, S] at row 0, first [T+1, B] bool: the state is zeroed there."""
        num_rows, batch = first.shape
        obs = self._normalized({key: value.flatten(0, 1) for key, value in obs.items()})
        states = state.split([tower.state_size for tower in self.trunk], dim=-1)
        outs = [tower.unroll(obs, part, first) for tower, part in zip(self.trunk, states, strict=True)]
        params, value = self._heads(outs[0], outs[-1])
        return UnrollOutput(params.view(num_rows, batch, -1)[:-1], value.view(num_rows, batch))

    @torch.no_grad()
    def update_normalizers(self, obs: Mapping[str, Tensor]) -> None:
        """Merge the observations {key: [..., *shape]} into the running statistics (the learner calls this)."""
        for key, norm in zip(self.normalized_keys, self.obs_norms, strict=True):
            shape = norm.moments.mean.shape
            samples = obs[key].reshape(-1, *shape)
            norm.moments.update(samples, samples.new_ones(len(samples), dtype=torch.bool))

    def _normalized(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        out = dict(obs)
        for key, norm in zip(self.normalized_keys, self.obs_norms, strict=True):
            out[key] = norm(out[key])
        return out

    def _heads(self, actor: Tensor, critic: Tensor) -> tuple[Tensor, Tensor]:
        """Features [M, F] of each -> params [M, P], value [M]; in float32: log-probabilities need its digits."""
        with torch.autocast(actor.device.type, enabled=False):
            head_dtype = self.policy_head.weight.dtype
            params = self.policy_head(actor.to(head_dtype))
            if len(self.log_stddev):
                params = torch.cat((params, self.log_stddev.expand(len(params), -1)), dim=-1)
            return params, self.value_head(critic.to(head_dtype)).squeeze(-1)


class _Tower(nn.Module):
    """An encoder for each observation, side by side, and the core."""

    def __init__(self, config: ModelConfig, obs_space: gym.spaces.Dict) -> None:
        super().__init__()
        self.keys = list(obs_space)
        self.encoders = nn.ModuleList(
            build_encoder(_encoder_name(config.encoder, space, obs_space), space, config)
            for space in obs_space.values()
        )
        num_features = sum(encoder.out_size for encoder in self.encoders)
        self.core: GRU | LSTM | None = None
        if config.core != "none":
            self.core = {"gru": GRU, "lstm": LSTM}[config.core](num_features, config.rnn_size)
        self.out_size: int = self.core.out_size if self.core else num_features
        self.state_size: int = self.core.state_size if self.core else 0

    def step(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        features = self._encode(obs)
        return self.core.step(features, state, first) if self.core else (features, state)

    def unroll(self, obs: Mapping[str, Tensor], state: Tensor, first: Tensor) -> Tensor:
        """Observations {key: [T x B, ...]}, first [T, B] -> features [T x B, out_size]."""
        features = self._encode(obs)
        if not self.core:
            return features
        return self.core.unroll(features.view(*first.shape, -1), state, first).flatten(0, 1)

    def _encode(self, obs: Mapping[str, Tensor]) -> Tensor:
        features = [encoder(obs[key]) for key, encoder in zip(self.keys, self.encoders, strict=True)]
        return features[0] if len(features) == 1 else torch.cat(features, dim=-1)


def _encoder_name(name: str, space: gym.spaces.Box, obs_space: gym.spaces.Dict) -> str:
    """Beside images, the encoder that is named takes the images, and vectors get an mlp."""
    if is_image(space):
        return "simple" if name == "auto" else name
    beside_images = any(is_image(other) for other in obs_space.values())
    return "mlp" if name == "auto" or beside_images else name
