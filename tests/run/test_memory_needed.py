"""How much memory a run is said to need before it begins."""

import dataclasses

import pytest

from sf import make_config
from sf.envs.errors import UsageError
from sf.run import memory_needed
from sf.run.planning import make_plan


@pytest.fixture(scope="module")
def plan():
    return make_plan(
        make_config(env="toy_identity", num_workers=1, num_envs_per_worker=4, device="cpu", gradient_workers=0)
    )


def size_of(plan, name):
    (part,) = (part for part in memory_needed.parts(plan) if part.name.startswith(name))
    return part.num_bytes


def test_the_largest_part_is_named_with_what_makes_it_smaller(plan):
    total = sum(part.num_bytes for part in memory_needed.parts(plan))
    memory_needed.require(total, plan)
    with pytest.raises(UsageError, match=r"the run needs .* GiB are free; .* are for .*: lower .*--"):
        memory_needed.require(total - 1, plan)


def test_page_locked_batches_take_powers_of_two_and_networks_are_in_the_memory_of_the_gpu(plan):
    there = dataclasses.replace(plan, device="cuda:0")
    here, rounded = (size_of(each, "batches of the learner") for each in (plan, there))
    assert here < rounded < 2 * here
    assert size_of(there, "copies of the network") < size_of(plan, "copies of the network")


def test_twice_as_many_environments_need_twice_the_trajectories(plan):
    config = make_config(env="toy_identity", num_workers=1, num_envs_per_worker=8, device="cpu", gradient_workers=0)
    assert size_of(make_plan(config), "trajectories") == 2 * size_of(plan, "trajectories")
