"""A learner's updater as one rank of several, on its part of batches that one learner could train on as a whole.

As a program: `one_rank.py RANK SIZE STORE OUT WAYS`, where WAYS are flags by name as JSON.
"""

from __future__ import annotations

import json
import sys

import gymnasium as gym
import numpy as np
import torch
from network_numbers import numbers_of

from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.update import Updater
from sf.ranks.ranks import ALONE, DistributedRanks

T, B = 4, 8  # of the whole; B is cut among the ranks
NUM_ITERATIONS = 8
OBS_SPACE = gym.spaces.Dict(
    {
        "vector": gym.spaces.Box(-1, 1, (5,), np.float32),
        "action_mask": gym.spaces.Box(0, 1, (3,), np.int8),
    }
)
ACTION = ActionSpec((3,), 0)
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
    return Updater(config, OBS_SPACE, ACTION, bfloat16=False, device=CPU, ranks=ranks)


def make_batch(config, seed, state_size):
    """Columns whose rewards and observations differ, so that their statistics do, too."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=generator)

    column = torch.arange(B) / B
    acts = uniform(T + 1, B) < 0.9
    mask = (uniform(T + 1, B, 3) < 0.7) | (torch.arange(3) == 0)
    return Batch(
        obs={"vector": uniform(T + 1, B, 5) + column[:, None], "action_mask": (mask & acts[..., None]).to(torch.int8)},
        first=uniform(T + 1, B) < 0.2,
        state=uniform(B, state_size),
        discrete=torch.zeros(T, B, 1, dtype=torch.int32),
        continuous=torch.zeros(T, B, 0),
        log_prob=torch.where(acts[:-1], -uniform(T, B), 0.0),
        value=uniform(T, B),
        policy_version=torch.ones((T, B), dtype=torch.int32),
        reward=uniform(T, B) * (1 + 3 * column),
        terminated=uniform(T, B) < 0.1,
        valid=uniform(T, B) > 0.1 + 0.5 * column,
    )


def columns_of(rank, size, num_minibatches):
    """Those that make each minibatch of the ranks together the minibatch of one learner, in their order."""
    per_minibatch = torch.arange(B).chunk(num_minibatches)
    return torch.cat([columns.chunk(size)[rank] for columns in per_minibatch])


def part_of(batch, columns):
    return batch.columns(columns)


def trained(flags, rank=0, size=1, ranks=ALONE):
    """All weights and statistics, and what was measured."""
    num_minibatches = flags.get("num_batches_per_epoch", 1)
    config = CONFIG.replace(batch_size=T * B // size // num_minibatches, num_batches_per_epoch=num_minibatches)
    config = config.replace(**{key: value for key, value in flags.items() if key != "num_batches_per_epoch"})
    updater = make_updater(config, rank, ranks)
    columns = columns_of(rank, size, num_minibatches)
    metrics = {}
    for iteration in range(NUM_ITERATIONS):
        batch = make_batch(config, iteration, updater.model.state_size)
        updater.train_iteration(part_of(batch, columns), iteration / NUM_ITERATIONS)
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
