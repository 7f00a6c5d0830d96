"""The copy of the network that acts, and weights as one flat vector, which is how they travel to it.

The learner calls `write_flat` into memory that both see; a policy worker calls `load_flat` from it.
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
    """Numbers in the flat vector: all parameters, then all buffers, in the order of their registration."""
    return sum(tensor.numel() for tensor in _tensors(model))


@torch.no_grad()
def write_flat(model: nn.Module, out: Tensor) -> None:
    """Copy everything in `model` into `out` [num_weights] float32."""
    tensors = _tensors(model)
    _copy(_parts(out, tensors), tensors)


@torch.no_grad()
def load_flat(model: nn.Module, flat: Tensor) -> None:
    """Copy `flat` [num_weights] float32, which `write_flat` filled, into `model`, in the dtypes it has."""
    tensors = _tensors(model)
    _copy(tensors, _parts(flat, tensors))


def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Tensors of one dtype at a time: with several among the targets, CUDA wrote them all as the first (PyTorch 2.7 to
    2.10, pull request 173531)."""
    pairs = list(zip(targets, sources, strict=True))
    for dtypes in {(target.dtype, source.dtype) for target, source in pairs}:
        alike = [pair for pair in pairs if (pair[0].dtype, pair[1].dtype) == dtypes]
        torch._foreach_copy_([target for target, _ in alike], [source for _, source in alike])


def _tensors(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def _parts(flat: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """Views of `flat` in the shapes of the tensors: logical order, whatever the memory format."""
    sizes = [tensor.numel() for tensor in tensors]
    if flat.shape != (sum(sizes),):
        raise ValueError(f"a flat vector of shape {tuple(flat.shape)}: this network has {sum(sizes)} weights")
    return [part.view(tensor.shape) for part, tensor in zip(flat.split(sizes), tensors, strict=True)]
