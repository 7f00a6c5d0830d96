"""A learner's updater as one rank of several, on its part of batches that one learner could train on as a whole.

As a program: `one_rank.py RANK SIZE STORE OUT WAYS`, where WAYS are flags by name as JSON.
"""

from __future__ import annotations

import json
import sys

import small_batches
import torch
from network_numbers import numbers_of
from small_batches import MASKED

from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.update import Updater
from sf.ranks.ranks import ALONE, DistributedRanks

T, B = 4, 8  # of the whole; B is cut among the ranks
NUM_ITERATIONS = 8
ACTION = ActionSpec((3, 2), 0)
CPU = torch.device("cpu")
CONFIG = Config().replace(
    rollout=T,
    num_epochs=2,
    rnn_size=8,
    encoder_mlp_layers=(16,),
    normalize_input=True,
    normalize_returns=True,
    adam_eps=1e-3,  # its first steps would blow up rounding otherwise
    max_grad_norm=0.5,
    gamma=0.9,
)


def make_updater(config, rank=0, ranks=ALONE):
    torch.manual_seed(rank)  # the weights are those of rank 0
    return Updater(config, MASKED, ACTION, bfloat16=False, device=CPU, ranks=ranks)


def make_batch(seed, state_size):
    """Columns whose observations, rewards and shares of valid steps differ, so that their statistics do, too."""
    batch = small_batches.make_batch(MASKED, ACTION, seed, state_size=state_size, size=(T, B))
    column = torch.arange(B) / B
    batch.obs["obs"] += column[:, None]
    batch.reward.mul_(1 + 3 * column)
    batch.valid &= batch.value > 0.5 * column
    return batch


def columns_of(rank, size, num_minibatches):
    """Those that make each minibatch of the ranks together the minibatch of one learner, in their order."""
    per_minibatch = torch.arange(B).chunk(num_minibatches)
    return torch.cat([columns.chunk(size)[rank] for columns in per_minibatch])


def trained(flags, rank=0, size=1, ranks=ALONE):
    """All weights and statistics, and what was measured."""
    num_minibatches = flags.get("num_batches_per_epoch", 1)
    config = CONFIG.replace(batch_size=T * B // size // num_minibatches, num_batches_per_epoch=num_minibatches)
    config = config.replace(**{key: value for key, value in flags.items() if key != "num_batches_per_epoch"})
    updater = make_updater(config, rank, ranks)
    columns = columns_of(rank, size, num_minibatches)
    metrics = {}
    for iteration in range(NUM_ITERATIONS):
        batch = make_batch(iteration, updater.model.state_size)
        updater.train_iteration(batch.columns(columns), iteration / NUM_ITERATIONS)
        metrics[iteration] = updater.pop_metrics()
    return numbers_of(updater.model), metrics


def main():
    rank, size, store_path, out, ways = sys.argv[1:]
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(store_path, int(size))
    torch.distributed.init_process_group("gloo", store=store, rank=int(rank), world_size=int(size))
    torch.randperm = torch.arange  # each learner shuffles its own samples: so they are cut alike
    came_to = {}
    for name, flags in json.loads(ways).items():
        ranks = DistributedRanks(CPU, store, flags.get("compress_gradients", False))
        came_to[name] = trained(flags, ranks.rank, ranks.size, ranks)
    torch.save(came_to, out)
    ranks.leave()


if __name__ == "__main__":
    main()
