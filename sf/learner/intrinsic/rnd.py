"""Implements random network distillation (Burda et al. 2018): what is badly predicted of a random network is new."""

from __future__ import annotations

from collections.abc import Mapping

import gymnasium as gym
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.learner.intrinsic.features import Features
from sf.learner.intrinsic.reward import IntrinsicReward
from sf.model.registry import register_intrinsic

_NUM_OUTPUTS = 256
_HIDDEN = 256


@register_intrinsic("rnd")
class RandomNetworkDistillation(IntrinsicReward):
    """The bonus of an observation is the mean squared error of the predictor (section 2.2)."""

    def __init__(self, obs_space: gym.spaces.Dict, config: ModelConfig) -> None:
        super().__init__()
        target, predictor = Features(obs_space, config), Features(obs_space, config)
        self.target = nn.Sequential(target, nn.Linear(target.out_size, _NUM_OUTPUTS)).requires_grad_(False)
        self.predictor = nn.Sequential(
            predictor,
            nn.Linear(predictor.out_size, _HIDDEN),
            nn.ReLU(),
            nn.Linear(_HIDDEN, _NUM_OUTPUTS),
        )

    @torch.no_grad()
    def bonus(self, obs: Mapping[str, Tensor]) -> Tensor:
        return self._errors(obs)

    def learn(self, obs: Mapping[str, Tensor]) -> Tensor:
        return self._errors(obs).mean()

    def _errors(self, obs: Mapping[str, Tensor]) -> Tensor:
        with torch.no_grad():
            target = self.target(obs).float()
        error: Tensor = (self.predictor(obs).float() - target).square().mean(-1)
        return error
