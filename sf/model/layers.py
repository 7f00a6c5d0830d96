"""Building blocks of the whole network: initialisation, activations, the dtype of the products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.config import ModelConfig
from sf.envs.errors import UsageError
from sf.system.native import kernels

HIDDEN_GAIN = math.sqrt(2.0)  # keeps the variance of a layer's input through a rectifier (He et al. 2015)

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def orthogonal(layer: Layer, gain: float = HIDDEN_GAIN) -> Layer:
    """The same layer, with orthogonal weights (Saxe et al. 2014) and biases of 0."""
    make_orthogonal(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


_waiting: list[tuple[Tensor, float]] | None = None


def make_orthogonal(weight: Tensor, gain: float = 1.0) -> None:
    """Fills a weight with orthogonal numbers: at once, which takes minutes for the largest, or see `left_for_later`."""
    if _waiting is None:
        nn.init.orthogonal_(weight, gain)
    else:
        weight.detach()[(0,) * weight.ndim] = math.nan  # until it is filled, also by another rule
        _waiting.append((weight, gain))


@contextmanager
def left_for_later() -> Iterator[list[tuple[Tensor, float]]]:
    """Networks that are built inside have no numbers in their orthogonal weights, as most come from elsewhere. Yields a
    list, which in the end has these weights, or parts of them, with their gains."""
    global _waiting  # noqa: PLW0603  what builds a network calls modules of the user, through which nothing can be handed
    _waiting = []
    try:
        yield _waiting
        _waiting[:] = [(weight, gain) for weight, gain in _waiting if weight[(0,) * weight.ndim].isnan()]
    finally:
        _waiting = None


def activation(nonlinearity: str, *, inplace: bool = True) -> nn.Module:
    """A module of the activation `nonlinearity`: elu, relu, leaky_relu or tanh.

    In place, ELU's backward pass reads the result and needs no exponential, and no copy of the input is kept.
    """
    if nonlinearity == "elu":
        return ELU(inplace)
    if nonlinearity == "relu":
        return nn.ReLU(inplace=inplace)
    if nonlinearity == "leaky_relu":
        return nn.LeakyReLU(inplace=inplace)
    if nonlinearity == "tanh":
        return nn.Tanh()
    raise UsageError(f"nonlinearity is {nonlinearity}: elu, relu, leaky_relu or tanh")


class Compilable(nn.Module):
    """A layer that compiled loops of `sf.system.native` can compute. with_loops: whether they may, as `--compile`
    says."""

    with_loops = True


class ELU(Compilable):
    """exp(x) - 1 below 0 (Clevert et al. 2016), by a compiled loop where there is one: a third of PyTorch's time."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self._inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        if not (self.with_loops and kernels.takes_elu(x)):
            return F.elu(x, inplace=self._inplace)
        x = x if self._inplace else x.clone()
        if torch.is_grad_enabled() and x.requires_grad:
            return _ELU.apply(x)
        kernels.elu_(x)
        return x


class _ELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        kernels.elu_(x)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (result,) = ctx.saved_tensors
        return torch.ops.aten.elu_backward(grads[0], 1.0, 1.0, 1.0, True, result)


class ResidualLayer(nn.Module):
    """x + two linear layers with an activation between them, of which the second begins with weights of 0: so the block
    begins as the identity (He et al. 2016, "Identity mappings")."""

    def __init__(self, width: int, nonlinearity: str, *, layer_norm: bool = False) -> None:
        super().__init__()
        second = orthogonal(nn.Linear(width, width))
        nn.init.zeros_(second.weight)
        self.branch = nn.Sequential(*_layer(width, width, nonlinearity, layer_norm), second)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def _layer(in_size: int, width: int, nonlinearity: str, layer_norm: bool) -> list[nn.Module]:
    norm = [nn.LayerNorm(width)] if layer_norm else []
    return [orthogonal(nn.Linear(in_size, width)), *norm, activation(nonlinearity)]


def mlp(
    in_size: int, widths: tuple[int, ...], nonlinearity: str, *, layer_norm: bool = False, num_residual: int = 0
) -> tuple[nn.Sequential, int]:
    """Linear layers with an activation after each, and the size of what they give.

    layer_norm: normalise what goes into each activation over its features (Ba et al. 2016, equation 3), with a learned
    gain and bias. num_residual: how many of the layers, the last ones, are residual blocks.
    """
    layers: list[nn.Module] = []
    for idx, width in enumerate(widths):
        if idx >= len(widths) - num_residual:
            layers.append(ResidualLayer(width, nonlinearity, layer_norm=layer_norm))
        else:
            layers += _layer(in_size, width, nonlinearity, layer_norm)
        in_size = width
    return nn.Sequential(*layers), in_size


def head_of_images(in_size: int, config: ModelConfig) -> tuple[nn.Sequential, int]:
    """Returns the `mlp` behind the convolutions of an encoder, and its size, as the flags say."""
    return mlp(
        in_size,
        config.encoder_conv_mlp_layers,
        config.nonlinearity,
        layer_norm=config.layer_norm,
        num_residual=config.encoder_conv_mlp_residual,
    )


def channels_last(convolutions: nn.Sequential) -> nn.Sequential:
    """The same layers, with their weights in the memory format that convolutions are fastest in."""
    return convolutions.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in the stub


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The dtype of products with `weight`: autocast's where it is on, else the weight's."""
    device = weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
