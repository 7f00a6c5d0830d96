"""How much memory a run is said to need before it begins."""

import dataclasses

import pytest
from allocated import allocate, learner_args
from torch import nn

from sf import make_config
from sf.config import Config
from sf.envs.errors import UsageError
from sf.learner.state import new_updater
from sf.model import registry
from sf.run.memory_needed import parts_needed, require_memory
from sf.run.planning import make_plan
from sf.storage.checkpoint import Checkpoint


@pytest.fixture(scope="module")
def plan():
    return make_plan(
        make_config(env="toy_identity", num_workers=1, num_envs_per_worker=4, device="cpu", gradient_workers=0)
    )


def size_of(plan, name):
    (part,) = (part for part in parts_needed(plan) if part.name.startswith(name))
    return part.num_bytes


def test_the_largest_part_is_named_with_what_makes_it_smaller(plan):
    total = sum(part.num_bytes for part in parts_needed(plan))
    require_memory(total, plan)
    with pytest.raises(UsageError, match=r"the run needs .* GiB are free; .* are for .*: lower .*--"):
        require_memory(total - 1, plan)


def test_page_locked_batches_take_powers_of_two_and_networks_are_in_the_memory_of_the_gpu(plan):
    there = dataclasses.replace(plan, device="cuda:0")
    here, rounded = (size_of(each, "batches of the learner") for each in (plan, there))
    assert here < rounded < 2 * here
    assert size_of(there, "copies of the network") < size_of(plan, "copies of the network")


def test_twice_as_many_environments_need_twice_the_trajectories(plan):
    config = make_config(env="toy_identity", num_workers=1, num_envs_per_worker=8, device="cpu", gradient_workers=0)
    assert size_of(make_plan(config), "trajectories") == 2 * size_of(plan, "trajectories")


class OneLayerUnderManyNames(nn.Module):
    out_size = 256

    def __init__(self, space, config):
        super().__init__()
        self.first = nn.Linear(space.shape[0], 256)
        self.layers = nn.ModuleList([nn.Linear(256, 256)] * 24)

    def forward(self, obs):
        features = self.first(obs.to(self.first.weight.dtype))
        for layer in self.layers:
            features = layer(features).relu()
        return features


def test_it_holds_a_layer_under_each_of_its_names(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._encoders, "own", OneLayerUnderManyNames)
    memory = allocate(Config().replace(env="toy_identity", encoder="own", num_workers=1, device="cpu"), tmp_path)
    updater = new_updater(learner_args(memory), memory.plan.config)
    tensors = updater.tensors()
    assert any(name.endswith("layers.23.weight") for name in tensors)
    memory.recoveries[0].write(Checkpoint(tensors, {"env_steps": 5}))
    assert memory.recoveries[0].read().tensors.keys() == tensors.keys()
