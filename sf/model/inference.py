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
from sf.model.building import build_model

_WORD = 4  # bytes of a number of the vector


def inference_model(
    config: ModelConfig,
    obs_space: gym.spaces.Dict,
    action_spec: ActionSpec,
    precision: Literal["bfloat16", "float32"],
    device: torch.device | str,
) -> Any:
    """A network for `step` alone, without gradients.

    With bfloat16, what is float32 in its `trunk` is held in that dtype: autocast would convert every weight at every
    call.
    """
    model = build_model(config, obs_space, action_spec).to(device).requires_grad_(False).eval()
    if precision == "bfloat16":
        for tensor in _tensors(model.trunk):
            if tensor.dtype == torch.float32:
                tensor.data = tensor.data.to(torch.bfloat16)  # in place: under all names that it has
    return model


def num_weights(model: nn.Module) -> int:
    """Numbers in the flat vector: of all parameters, and then of all buffers, in the order of their registration."""
    return sum(map(_num_words, _tensors(model)))


class Flat:
    """All numbers of a network as one vector of float32, and the way between the two.

    What float32 has no digits for travels as its bits, so that a number of 64 bits is two of the vector: the mean of a
    clock would be wrong by a minute.

    It looks at the network once: to go through its modules takes longer than to copy a small one.
    """

    def __init__(self, model: nn.Module, vector: Tensor) -> None:
        """vector: [num_weights] float32. Raises ValueError where it is of another length."""
        tensors = _tensors(model)
        sizes = list(map(_num_words, tensors))
        if vector.shape != (sum(sizes),):
            raise ValueError(f"a flat vector of shape {tuple(vector.shape)}: this network has {sum(sizes)} weights")
        pairs = list(zip(vector.split(sizes), tensors, strict=True))
        self._as_bits = [(part, tensor) for part, tensor in pairs if _travels_as_bits(tensor)]
        # In the shapes of the tensors: logical order, whatever the memory format.
        pairs = [(part.view(tensor.shape), tensor) for part, tensor in pairs if not _travels_as_bits(tensor)]
        # Tensors of one dtype at a time: with several among the targets, CUDA wrote them all as the first (PyTorch 2.7
        # to 2.10, pull request 173531).
        dtypes = dict.fromkeys(tensor.dtype for _, tensor in pairs)
        self._alike = [
            ([part for part, tensor in pairs if tensor.dtype == dtype], [x for _, x in pairs if x.dtype == dtype])
            for dtype in dtypes
        ]
        self.vector = vector

    @torch.no_grad()
    def write(self) -> None:
        """From the network into the vector."""
        for parts, tensors in self._alike:
            torch._foreach_copy_(parts, tensors)
        for part, tensor in self._as_bits:
            part.copy_(tensor.reshape(-1).contiguous().view(part.dtype))

    @torch.no_grad()
    def load(self) -> None:
        """From the vector into the network, in the dtypes it has."""
        for parts, tensors in self._alike:
            torch._foreach_copy_(tensors, parts)
        for part, tensor in self._as_bits:
            # A copy of the part: a number of 64 bits may begin anywhere in the vector.
            tensor.copy_(part.clone().view(tensor.dtype).view(tensor.shape))


def write_flat(model: nn.Module, out: Tensor) -> None:
    """Copy everything in `model` into `out` [num_weights] float32."""
    Flat(model, out).write()


def load_flat(model: nn.Module, flat: Tensor) -> None:
    """Copy `flat` [num_weights] float32, which `write_flat` filled, into `model`, in the dtypes it has."""
    Flat(model, flat).load()


def _tensors(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def _travels_as_bits(tensor: Tensor) -> bool:
    return tensor.dtype != torch.float32 and tensor.dtype.itemsize >= _WORD


def _num_words(tensor: Tensor) -> int:
    return tensor.numel() * (tensor.dtype.itemsize // _WORD if _travels_as_bits(tensor) else 1)
