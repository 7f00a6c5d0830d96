"""The tensors of a checkpoint: network, moments of the optimiser, and the state of the random numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor, nn

from sf.learner.optimizer.optimizer import Optimizer
from sf.storage.checkpoint import MODEL, OPTIMIZER

RNG = "rng"


def tensors_of(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Returns the tensors of a checkpoint: the tensors themselves, and a copy of the state of the random numbers."""
    out: dict[str, Tensor] = {MODEL + name: value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        out |= {f"{OPTIMIZER}{name}/{key}": value for key, value in optimizer.moments(parameter).items()}
    return {**out, RNG: torch.get_rng_state()}


def never_finite(model: nn.Module) -> frozenset[str]:
    """Returns the names of the tensors of a new network that are not trained, and are Inf or NaN by intention, such as
    the mask of an attention. A tensor that is shared has several names."""
    trained = {name for name, x in model.named_parameters(remove_duplicate=False) if x.requires_grad}
    return frozenset(
        MODEL + name
        for name, tensor in model.state_dict().items()
        if name not in trained and not tensor.isfinite().all()
    )


def are_finite(tensors: Mapping[str, Tensor], but_for: Collection[str]) -> bool:
    """Returns whether all tensors are finite, except those whose names are in `but_for`."""
    checked = [value for name, value in tensors.items() if name not in but_for]
    floats = [value for value in checked if value.is_floating_point() and value.numel()]
    # Both are NaN if any element is. They take no memory, and a quarter of the time of isfinite().
    extremes = [extreme for value in floats for extreme in torch.aminmax(value)]
    return bool(torch.stack([extreme.double().isfinite() for extreme in extremes]).all())


def load_tensors(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load what `tensors_of` returned for the same network. Moments that it lacks begin as zeros."""
    model.load_state_dict({name[len(MODEL) :]: value for name, value in tensors.items() if name.startswith(MODEL)})
    for name, parameter in model.named_parameters():
        prefix, moments = f"{OPTIMIZER}{name}/", optimizer.moments(parameter)
        for key, value in tensors.items():
            if key.startswith(prefix):
                # The fused kernel walks raw memory: moments need the memory format of their parameter.
                like = torch.empty_like(
                    parameter if value.ndim else value, device=parameter.device, requires_grad=False
                )
                moments[key[len(prefix) :]] = like.copy_(value)
        for key, value in moments.items():
            if prefix + key not in tensors:
                value.zero_()
    torch.set_rng_state(tensors[RNG])
