"""Reads the observations of a policy without memory, for rewards and values beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.spaces.observations import channels_trail, is_image
from sf.model.encoders.choice import NOT_NORMALISED, encoder_names
from sf.model.normalizers import ObsNormalizer
from sf.model.trunk import Tower

_LARGEST_SIDE = 72  # of an image: the shorter side of what is larger is halved, by leaving every second pixel out
_SIZES: Any = {"encoder_mlp_layers": (128, 128), "encoder_conv_mlp_layers": (128,), "core": "none", "core_skip": False}


class Features(nn.Module):
    """Runs the encoders of a policy with layers of their own sizes, on large images at half their height and width."""

    def __init__(self, obs_space: gym.spaces.Dict, config: ModelConfig) -> None:
        super().__init__()
        boxes = cast("dict[str, gym.spaces.Box]", dict(obs_space.items()))
        self._strides = {key: _stride(box) for key, box in boxes.items()}
        boxes = {key: _shrunk(box, self._strides[key]) for key, box in boxes.items()}
        config = replace(config, **_SIZES)
        names = encoder_names(config.encoder, boxes, config.any_planes, config.float_planes)
        self.norm = ObsNormalizer({key: box for key, box in boxes.items() if names[key] not in NOT_NORMALISED})
        self.tower = Tower(config, boxes, names)
        self.out_size = self.tower.out_size

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Observations {key: [N, ...]} -> [N, out_size]."""
        return self.tower.encode(self.norm(self._seen(obs), torch.float32))

    def update(self, obs: Mapping[str, Tensor], mask: Tensor) -> None:
        """Merge observations {key: [T, B, ...]} into the statistics, where `mask` [T, B] holds."""
        shape = mask.shape
        seen = self._seen({key: obs[key].flatten(0, 1) for key in self._strides})
        self.norm.update({key: each.unflatten(0, shape) for key, each in seen.items()}, mask)

    def _seen(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {key: obs[key][stride] for key, stride in self._strides.items()}


def _stride(box: gym.spaces.Box) -> tuple[slice, ...]:
    """Returns what of N observations is looked at, as an index of [N, *shape]."""
    if not is_image(box):
        return (slice(None),)
    rows_and_columns = slice(0, 2) if channels_trail(box.shape) else slice(1, 3)
    if min(box.shape[rows_and_columns]) < _LARGEST_SIDE:
        return (slice(None),)
    half = slice(None, None, 2)
    return (slice(None), half, half) if channels_trail(box.shape) else (slice(None), slice(None), half, half)


def _shrunk(box: gym.spaces.Box, stride: tuple[slice, ...]) -> gym.spaces.Box:
    if len(stride) == 1:
        return box
    low, high = box.low[stride[1:]], box.high[stride[1:]]
    assert isinstance(box.dtype, np.dtype)
    return gym.spaces.Box(low, high, dtype=box.dtype.type)
