"""What a learner and one of its gradient workers share: a part of a minibatch, and what becomes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from sf.arrays import Field, SharedArrays
from sf.config import Config
from sf.envs import ActionSpec, EnvSpec
from sf.model.actor_critic import UnrollOutput
from sf.rows import OBS


class Inputs(NamedTuple):
    """Of `ActorCritic.unroll`: obs {key: [R, C, ...]}, state [C, S], first [R, C] bool. R counts the last row, too."""

    obs: Mapping[str, Tensor]
    state: Tensor
    first: Tensor


@dataclass(frozen=True)
class Sizes:
    """Of the largest part: num_rows over all of its columns, num_columns."""

    num_rows: int
    num_columns: int

    @classmethod
    def of_share(cls, config: Config, num_shares: int) -> Sizes:
        """For a minibatch that is cut into so many parts, of trajectories or of single steps."""
        num_steps, num_batches = config.rollout, config.learner.num_batches_per_epoch
        columns = math.ceil(math.ceil(config.slots_per_iteration / num_batches) / num_shares)
        single_steps = math.ceil(math.ceil(config.slots_per_iteration * num_steps / num_batches) / num_shares)
        return cls(max(columns * (num_steps + 1), single_steps + 1), columns)


class SharedPart:
    """The memory. The learner fills in the inputs, the worker the output; then the learner the gradients of the output,
    and the worker those of the weights."""

    def __init__(self, spec: EnvSpec, sizes: Sizes, state_size: int, num_weights: int) -> None:
        """num_weights: of parameters and buffers."""
        action = ActionSpec.of(spec.action_space)
        rows, num_params = sizes.num_rows, sum(action.discrete_sizes) + 2 * action.num_continuous
        boxes = cast("dict[str, gym.spaces.Box]", dict(spec.obs_space.items()))
        fields = [
            *(Field(OBS + key, (rows, *box.shape), box.dtype) for key, box in boxes.items()),
            Field("state", (sizes.num_columns, state_size), np.float32),
            Field("first", (rows,), np.bool_),
            *(Field(name, (rows, num_params), np.float32) for name in ("params", "d_params")),
            *(Field(name, (rows,), np.float32) for name in ("value", "d_value")),
            Field("gradients", (num_weights,), np.float32),
        ]
        arrays = SharedArrays(fields, name="sf-gradients")  # keeps the mapping alive
        self._obs = {key: torch.from_numpy(array) for key, array in arrays.named(OBS).items()}
        self._tensors = {field.name: torch.from_numpy(arrays[field.name]) for field in fields}

    def inputs(self, num_rows: int, num_columns: int) -> Inputs:
        return Inputs(
            {key: _shaped(rows, num_rows, num_columns) for key, rows in self._obs.items()},
            self._tensors["state"][:num_columns],
            _shaped(self._tensors["first"], num_rows, num_columns),
        )

    def output(self, num_rows: int, num_columns: int) -> UnrollOutput:
        return self._of_output("params", "value", num_rows, num_columns)

    def gradients_of_output(self, num_rows: int, num_columns: int) -> UnrollOutput:
        return self._of_output("d_params", "d_value", num_rows, num_columns)

    def gradients(self, parameters: list[torch.nn.Parameter]) -> list[Tensor]:
        """Of the weights, in the shapes of the parameters."""
        sizes = [parameter.numel() for parameter in parameters]
        parts = self._tensors["gradients"][: sum(sizes)].split(sizes)
        return [part.view(parameter.shape) for part, parameter in zip(parts, parameters, strict=True)]

    def _of_output(self, params: str, value: str, num_rows: int, num_columns: int) -> UnrollOutput:
        return UnrollOutput(
            _shaped(self._tensors[params], num_rows - 1, num_columns),
            _shaped(self._tensors[value], num_rows, num_columns),
        )


def _shaped(rows: Tensor, num_rows: int, num_columns: int) -> Tensor:
    return rows[: num_rows * num_columns].unflatten(0, (num_rows, num_columns))
