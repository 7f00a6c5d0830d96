"""How long an iteration will take, known before the first one: a small piece of one is tried."""

from __future__ import annotations

import time

import torch

from sf import gpu
from sf.learner.args import LearnerArgs
from sf.learner.batches.batch import Batch
from sf.learner.state import new_updater

_PARTS = 32  # of a minibatch, one of which is tried


def iteration_seconds(args: LearnerArgs, state_size: int) -> float:
    """Train a network twice on 1/32 of a minibatch of zeros, and scale up the time of the second.

    The network is thrown away. Takes about a sixteenth of an optimiser step, and leaves the generator of random numbers
    as it was. state_size: S, of the recurrent state.
    """
    config, device = args.config, args.weights.device
    num_trajectories = config.slots_per_iteration
    width = max(1, num_trajectories // config.learner.num_batches_per_epoch // _PARTS)
    random_numbers = torch.get_rng_state()
    # With one step an iteration a synchronous run may not have the adaptive schedule, which the trial does not need.
    updater = new_updater(args, config.replace(num_epochs=1, num_batches_per_epoch=1, lr_schedule="constant"))
    batch = Batch.empty(args.slots.arrays, width, state_size, device)
    for tensor in batch.tensors():
        tensor.zero_()
    batch.valid.fill_(True)
    batch.policy_version.fill_(updater.version)
    seconds = 0.0
    for _ in range(2):  # the first one starts everything up
        began = time.perf_counter()
        updater.train_iteration(batch, share_done=0.0, after_step=lambda: None)
        gpu.now(device).wait()
        seconds = time.perf_counter() - began
    torch.set_rng_state(random_numbers)
    return seconds * config.learner.num_epochs * num_trajectories / width
