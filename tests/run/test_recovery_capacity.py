"""The memory for what a learner would save holds it, whatever its network."""

from allocated import allocate, learner_args
from torch import nn

from sf.config import Config
from sf.learner.state import new_updater
from sf.model import registry
from sf.storage.checkpoint import Checkpoint


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
