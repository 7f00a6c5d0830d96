"""How long an iteration will take, known before the first one: a small piece of one is tried."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sf import gpu
from sf.envs.errors import UsageError, place_of, summary
from sf.learner.args import LearnerArgs
from sf.learner.batches.batch import Batch
from sf.learner.state import new_updater

_PARTS = 32  # of a minibatch, one of which is tried
_TIMES, _SHORT_S = 3, 1.0  # that one which is done in less is timed


def iteration_seconds(args: LearnerArgs, state_size: int) -> float:
    """Train a network on 1/32 of a minibatch of zeros, and scale up the least time that this takes after the first.

    The network is thrown away. Takes an eighth of an optimiser step at most. The generators of random numbers on the
    CPU are left as they were, so only what a network of the user's own keeps in its class or module can tell that there
    was a trial. state_size: S, of the recurrent state.
    """
    with _generators_kept():
        return _iteration_seconds(args, state_size)


@contextmanager
def _generators_kept() -> Iterator[None]:
    """A network of the user's own may draw from any of the three."""
    torch_state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


@contextmanager
def _failures_of_the_network(network: nn.Module) -> Iterator[None]:
    """What a network of the user's own raises becomes one sentence with its line; what is ours stays as it is.

    Where an encoder of the user's own gives another number of features than it says, the sentence is about that.
    """
    wrong: list[str] = []

    def look(encoder: nn.Module, inputs: Any, features: Any) -> None:
        name, out_size = type(encoder).__name__, encoder.out_size
        if not isinstance(features, Tensor):
            wrong.append(
                f"the encoder {name} returns a {type(features).__name__} in place of a tensor: return its features "
                f"[N, {out_size}]"
            )
        elif features.ndim and features.shape[-1] != out_size:
            num = features.shape[-1]
            wrong.append(f"the encoder {name} gives {num} features, but its out_size is {out_size}: set it to {num}")
        elif features.shape != (len(inputs[0]), out_size):
            wrong.append(
                f"the encoder {name} gives features of the shape {tuple(features.shape)} for {len(inputs[0])} "
                f"observations: return [N, {out_size}], a row for each"
            )

    hooks = [module.register_forward_hook(look) for module in network.modules() if _is_own_encoder(module)]
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if wrong:
            raise UsageError(wrong[0]) from error
        place = place_of(error)
        if place is None and hooks:
            names = ", ".join(
                sorted({type(module).__name__ for module in network.modules() if _is_own_encoder(module)})
            )
            raise UsageError(
                f"the network fails on observations of zeros: {summary(error)}: mend the encoder {names}"
            ) from error
        if place is None:
            raise
        raise UsageError(
            f"the network fails on observations of zeros: {summary(error)} ({place}): mend it there"
        ) from error
    finally:
        for hook in hooks:
            hook.remove()


def _is_own_encoder(module: nn.Module) -> bool:
    of_package = type(module).__module__.partition(".")[0]
    return of_package != __name__.partition(".")[0] and isinstance(getattr(module, "out_size", None), Integral)


def _require_known_numbers(tensors: Mapping[str, Tensor]) -> None:
    """Raises UsageError for weights and buffers that cannot travel to the policy workers."""
    for name, tensor in tensors.items():
        if tensor.is_complex():
            raise UsageError(
                f"the network has {name} in {str(tensor.dtype).removeprefix('torch.')}: keep its real and imaginary "
                "part as float32, which torch.view_as_complex joins in forward"
            )


def _require_made_at_once(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Raises UsageError for what a network makes in its first forward pass: no checkpoint could be loaded into it."""
    made = ", ".join(sorted(after.keys() - before.keys()))
    if made:
        raise UsageError(
            f"the network makes {made} in its first forward pass, so its checkpoints would fit no new one: make all "
            "layers and buffers in __init__"
        )


def _iteration_seconds(args: LearnerArgs, state_size: int) -> float:
    config, device = args.config, args.weights.device
    num_trajectories = config.slots_per_iteration
    width = max(1, num_trajectories // config.learner.num_batches_per_epoch // _PARTS)
    # What may not be with one step an iteration, the trial does not need.
    of_one_step = config.replace(
        num_epochs=1,
        num_batches_per_epoch=1,
        lr_schedule="constant",
        trajectory_priority=0.0,
        augment_by_symmetry=False,
    )
    updater = new_updater(args, of_one_step)
    tensors = dict(updater.model.state_dict())
    _require_known_numbers(tensors)
    batch = Batch.empty(args.slots.arrays, width, state_size, device)
    for tensor in batch.tensors():
        tensor.zero_()
    batch.valid.fill_(True)
    batch.policy_version.fill_(updater.version)

    def seconds_of_one() -> float:
        began = time.perf_counter()
        with _failures_of_the_network(updater.model):
            updater.train_iteration(batch, share_done=0.0, after_step=lambda: None)
        gpu.now(device).wait()
        return time.perf_counter() - began

    seconds_of_one()  # starts everything up
    _require_made_at_once(tensors, updater.model.state_dict())
    seconds = seconds_of_one()
    for _ in range(_TIMES - 1 if seconds < _SHORT_S else 0):  # others may have had the core
        seconds = min(seconds, seconds_of_one())
    return seconds * config.learner.num_epochs * num_trajectories / width
