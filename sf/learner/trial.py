"""Tries a small piece of an iteration before the first: how long it takes, and whether the network works."""

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

from sf.envs.errors import UsageError, place_of, summary
from sf.learner.args import LearnerArgs
from sf.learner.batches.batch import Batch
from sf.learner.state import new_updater
from sf.model.actor_critic import ActorCritic
from sf.shared.policy_view import PolicyView
from sf.system import gpu

_PARTS = 32  # of a minibatch, one of which is tried
_TIMES, _SHORT_S = 3, 1.0  # that one which is done in less is timed


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


@_generators_kept()
def iteration_seconds(args: LearnerArgs, state_size: int) -> float:
    """Train a network on 1/32 of a minibatch of zeros, and scale up the least time that this takes after the first.

    The network is thrown away. Takes an eighth of an optimiser step at most. The generators of random numbers on the
    CPU are left as they were, so only what a network of the user's own keeps in its class or module can tell that there
    was a trial. state_size: S, of the recurrent state.
    """
    config, device = args.config, args.weights.device
    num_trajectories = config.trajectories_per_iteration
    num_together = max(1, len(args.teams))
    width = max(1, num_trajectories // num_together // config.learner.num_batches_per_epoch // _PARTS) * num_together
    # What may not be with one step an iteration, the trial does not need.
    of_one_step = config.replace(
        num_epochs=1,
        num_batches_per_epoch=1,
        lr_schedule="constant",
        trajectory_priority=0.0,
        augment_by_symmetry=False,
    )
    updater = new_updater(args, of_one_step)
    tensors = dict(updater.model.state_dict(keep_vars=True))
    require_known_numbers(tensors)
    batch = Batch.empty(PolicyView(args.spec).layout(args.slots.arrays), width, state_size, device)
    for tensor in batch.tensors():
        tensor.zero_()
    batch.valid.fill_(True)
    batch.policy_version.fill_(updater.version)

    def seconds_of_one() -> float:
        began = time.perf_counter()
        with failures_of_the_network(updater.model):
            updater.train_iteration(batch, share_done=0.0)
        gpu.now(device).wait()
        return time.perf_counter() - began

    seconds_of_one()  # starts everything up
    require_made_at_once(tensors, updater.model.state_dict(keep_vars=True))
    seconds = seconds_of_one()
    for _ in range(_TIMES - 1 if seconds < _SHORT_S else 0):  # others may have had the core
        seconds = min(seconds, seconds_of_one())
    return seconds * config.learner.num_epochs * num_trajectories / width


@contextmanager
def failures_of_the_network(network: nn.Module) -> Iterator[None]:
    """What a network of the user's own raises becomes one sentence with its line; what is ours stays as it is.

    Where an encoder of the user's own gives no features [N, out_size], the sentence is about that.
    """
    own = list(_own_encoders(network)) if isinstance(network, ActorCritic) else []  # parts of other models are theirs
    wrong: list[str] = []

    def look(encoder: nn.Module, inputs: tuple[Any, ...], features: Any) -> None:
        if len(inputs) != 1 or not isinstance(inputs[0], Tensor):
            return  # called by its owner, in a way of his own
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

    hooks = [module.register_forward_hook(look) for module in own]
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        if wrong:
            raise UsageError(wrong[0]) from error
        failure, place = f"the network fails on observations of zeros: {summary(error)}", place_of(error)
        if place is not None:
            raise UsageError(f"{failure} ({place}): fix it there") from error
        if not own:
            raise
        names = ", ".join(sorted({type(encoder).__name__ for encoder in own}))
        raise UsageError(f"{failure}: fix the encoder {names}") from error
    finally:
        for hook in hooks:
            hook.remove()


def _own_encoders(module: nn.Module) -> Iterator[nn.Module]:
    """Not what lies in one of them: its owner may call that as he likes."""
    of_package = type(module).__module__.partition(".")[0]
    if of_package != __name__.partition(".")[0] and isinstance(getattr(module, "out_size", None), Integral):
        yield module
    else:
        for child in module.children():
            yield from _own_encoders(child)


def require_known_numbers(tensors: Mapping[str, Tensor]) -> None:
    """Raises UsageError for weights and buffers that cannot travel to the policy workers."""
    for name, tensor in tensors.items():
        if tensor.is_complex():
            raise UsageError(
                f"the network has {name} in {str(tensor.dtype).removeprefix('torch.')}: keep its real and imaginary "
                "part as float32, which torch.view_as_complex joins in forward"
            )


def require_made_at_once(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Of a network before and after a forward pass, the tensors themselves. Raises UsageError for what it makes there:
    no checkpoint could be loaded into it, and for what it replaces, which would not travel to the policy workers."""
    made = ", ".join(sorted(after.keys() - before.keys()))
    if made:
        raise UsageError(
            f"the network makes {made} in its first forward pass, so its checkpoints would fit no new one: make all "
            "layers and buffers in __init__"
        )
    replaced = ", ".join(name for name, tensor in before.items() if after.get(name) is not tensor)
    if replaced:
        raise UsageError(
            f"the network puts another tensor in the place of {replaced} in its forward pass, so the policy workers "
            "would go on with the old one: write into it, as with `self.mean.copy_(new_mean)`"
        )
