"""A learner that shares its weights and takes batches, and does not train: for tests of what is in them."""

import torch

from sf.envs import ActionSpec
from sf.learner.batches.choice import make_loader
from sf.learner.update import Updater
from sf.shared.weights import PolicyWorkers, SharedWeights
from sf.system import gpu
from sf.system.processes.torch_runtime import configure


def memory_and_loader(reports, args):
    """Returns the memory of weights, with one number of version 1 in it, and the loader: for a network that counts."""
    configure(args.weights.device, num_threads=1, deterministic=True)
    memory = SharedWeights.create(args.weights)
    memory.publish(torch.ones(1), version=1)
    PolicyWorkers(memory, args.policy_workers, reports)
    return memory, make_loader(args, memory)


def updater_and_loader(reports, args):
    """Returns the updater whose weights act, and the loader."""
    configure(args.weights.device, num_threads=1, deterministic=True)
    spec, device = args.spec, gpu.torch_device(args.weights.device)
    updater = Updater(args.config, spec.obs_space, ActionSpec.of(spec.action_space), False, device)
    memory = SharedWeights.create(args.weights)
    memory.publish(updater.flat_weights(), version=1)
    PolicyWorkers(memory, args.policy_workers, reports)
    return updater, make_loader(args, memory)
