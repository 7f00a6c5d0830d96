"""What a policy worker draws its actions by, what it writes into the rows of its actors, and for whom nothing."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.envs import EnvSpec
from sf.policy.worker import _Policy
from sf.shared.requests import Channels
from sf.shared.slots import SlotPool
from sf.shared.weights import SharedWeights, SharedWeightsSpec

SPEC = EnvSpec(gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (2,))), gym.spaces.Discrete(9))
NUM_ACTORS, T = 4, 3


@pytest.mark.parametrize("num_dead", [0, 1])
@pytest.mark.parametrize("num_policies", [2, 3])
def test_of_several_policies_nothing_is_written_for_a_rollout_worker_that_has_died(num_policies, num_dead):
    channels = Channels.allocate(
        num_workers=2,
        groups_per_worker=1,
        slots_per_group=2,
        actors_per_group=2,
        policy_workers_per_policy=1,
        num_policies=num_policies,
    )
    rows = SlotPool.allocate(
        SPEC,
        T,
        inboxes=channels.inboxes,
        groups_per_worker=1,
        slots_per_group=2,
        actors_per_group=2,
        num_policies=num_policies,
    ).arrays
    rows["actor"][:] = range(NUM_ACTORS)
    rows["discrete"][:] = -1
    channels.tables["slots"][:] = [[0, 1], [2, 3]]
    channels.tables["policy"][:] = 1
    for idx in range(2):
        channels.of_worker(idx).ask(idx, row=2, policy_ids=[1])
    channel = channels.of_policy_worker(1)
    numbers = channel.numbers(groups := channel.take(at_least=2))
    slots, at, numbers_of_actors = channel.rows(groups, numbers)
    for idx in range(num_dead):
        channels.recover_worker(idx)
    policy = SimpleNamespace(_channel=channel, _rows=rows, _version=7)
    answers = {
        "discrete": np.arange(NUM_ACTORS)[:, None],
        "log_prob": np.full(NUM_ACTORS, -0.5),
        "value": np.ones(NUM_ACTORS),
    }
    _Policy._write(policy, slots, at, numbers_of_actors, answers)
    expected = np.full((NUM_ACTORS, T), -1)
    expected[2 * num_dead :, 2] = range(2 * num_dead, NUM_ACTORS)
    assert rows["discrete"][..., 0].tolist() == expected.tolist()
    for name, written in (("log_prob", -0.5), ("value", 1.0), ("policy_version", 7)):
        assert rows[name].tolist() == np.where(expected >= 0, written, 0).tolist()


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
        _lessons=None,
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
