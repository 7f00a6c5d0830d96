"""The copy of the network that acts, and weights as one flat vector, which is how they travel to it.

The learner writes its `Flat` and copies it into memory that both see; a policy worker loads its own from there.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import torch
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.model.registry import build_model


def inference_model(
    config: ModelConfig,
    obs_space: gym.spaces.Dict,
    action_spec: ActionSpec,
    precision: Literal["bfloat16", "float32"],
    device: torch.device | str,
) -> Any:
    """A network for `step` alone, without gradients.

    With bfloat16 its `trunk` is held in that dtype: autocast would convert every weight at every call.
    """
    model = build_model(config, obs_space, action_spec).to(device).requires_grad_(False).eval()
    if precision == "bfloat16":
        model.trunk.to(torch.bfloat16)
    return model


def num_weights(model: nn.Module) -> int:
    """Numbers in the flat vector: all parameters, then all buffers, in the order of their registration, and then the
    rests of those in float64."""
    tensors = _tensors(model)
    return sum(tensor.numel() for tensor in [*tensors, *_doubles(tensors)])


class Flat:
    """All numbers of a network as one vector, and the way between the two.

    A number in float64 is two of the vector: itself, and the rest that float32 has no digits for. The mean of a clock
    is wrong by a minute without it.

    It looks at the network once: to go through its modules takes longer than to copy a small one.
    """

    def __init__(self, model: nn.Module, vector: Tensor) -> None:
        """vector: [num_weights] float32. Raises ValueError where it is of another length."""
        tensors = _tensors(model)
        self._doubles = _doubles(tensors)
        sizes = [tensor.numel() for tensor in [*tensors, *self._doubles]]
        if vector.shape != (sum(sizes),):
            raise ValueError(f"a flat vector of shape {tuple(vector.shape)}: this network has {sum(sizes)} weights")
        parts = vector.split(sizes)
        # In the shapes of the tensors: logical order, whatever the memory format.
        pairs = [(part.view(tensor.shape), tensor) for part, tensor in zip(parts, tensors, strict=False)]
        self._rests = [part.view(x.shape) for part, x in zip(parts[len(tensors) :], self._doubles, strict=True)]
        # Tensors of one dtype at a time: with several among the targets, CUDA wrote them all as the first (PyTorch 2.7
        # to 2.10, pull request 173531).
        dtypes = dict.fromkeys(tensor.dtype for tensor in tensors)
        self._alike = [
            ([part for part, tensor in pairs if tensor.dtype == dtype], [x for x in tensors if x.dtype == dtype])
            for dtype in dtypes
        ]
        self.vector = vector

    @torch.no_grad()
    def write(self) -> None:
        """From the network into the vector."""
        for parts, tensors in self._alike:
            torch._foreach_copy_(parts, tensors)
        for rest, tensor in zip(self._rests, self._doubles, strict=True):
            rest.copy_((tensor - tensor.float()).nan_to_num_(0.0, 0.0, 0.0))  # of what is infinite there is no rest

    @torch.no_grad()
    def load(self) -> None:
        """From the vector into the network, in the dtypes it has."""
        for parts, tensors in self._alike:
            torch._foreach_copy_(tensors, parts)
        for rest, tensor in zip(self._rests, self._doubles, strict=True):
            tensor.add_(rest)


def write_flat(model: nn.Module, out: Tensor) -> None:
    """Copy everything in `model` into `out` [num_weights] float32."""
    Flat(model, out).write()


def load_flat(model: nn.Module, flat: Tensor) -> None:
    """Copy `flat` [num_weights] float32, which `write_flat` filled, into `model`, in the dtypes it has."""
    Flat(model, flat).load()


def _tensors(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def _doubles(tensors: list[Tensor]) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor.dtype == torch.float64]
