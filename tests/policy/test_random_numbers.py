"""What actions are drawn by: the same for a seed, a policy worker and a version, and others for each of these."""

from types import SimpleNamespace

import torch

from sf.policy.worker import _Policy
from sf.shared.weights import SharedWeights, SharedWeightsSpec


def drawn(versions, seed=1, idx=0):
    """By a policy worker, after it has seen the last of these versions."""
    memory = SharedWeights.create(SharedWeightsSpec.allocate("cpu", 1))
    generator = torch.Generator()
    policy = SimpleNamespace(
        _shared=memory,
        _version=0,
        _weights=torch.empty(2),
        _flat=SimpleNamespace(load=lambda: None),
        _batch=SimpleNamespace(generator=generator),
        _seed=(seed, idx),
    )
    for version in versions:
        memory.publish(torch.zeros(1), version)
        _Policy._refresh_weights(policy)
        numbers = torch.rand(4, generator=generator).tolist()
    return tuple(numbers)


def test_numbers_depend_on_the_seed_the_worker_and_the_version_and_not_on_what_was_drawn_before():
    assert drawn([1, 2, 5]) == drawn([5])
    others = {drawn([version], seed, idx) for version in (1, 2, 5) for seed in (1, 2) for idx in (0, 1)}
    assert len(others) == 3 * 2 * 2


def test_numbers_go_on_while_the_version_stays():
    assert drawn([1, 1]) != drawn([1])
