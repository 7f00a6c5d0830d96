"""How long an iteration will take, known before the first one: a small piece of one is tried."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from sf.learner.args import LearnerArgs
from sf.learner.batches.batch import Batch
from sf.learner.state import new_updater
from sf.learner.trial.own_networks import failures_of_the_network, require_known_numbers, require_made_at_once
from sf.system import gpu

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
    tensors = dict(updater.model.state_dict(keep_vars=True))
    require_known_numbers(tensors)
    batch = Batch.empty(args.slots.arrays, width, state_size, device)
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
