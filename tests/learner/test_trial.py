"""The trial before the first iteration, on a network that notices what is done with it."""

import random
from multiprocessing import Pipe

import numpy as np
import torch
from torch import nn

from sf.config import Config
from sf.learner.trial import iteration_seconds
from sf.model import registry
from sf.run.allocation import RunMemory
from sf.run.plan import make_plan
from sf.storage.run_dir import RunDir

made = []


class Draws(nn.Module):
    """It draws from every generator, and keeps a running statistic."""

    def __init__(self, space, config):
        super().__init__()
        self.out_size = 4
        self.layer = nn.Linear(space.shape[0], self.out_size)
        self.register_buffer("num_calls", torch.zeros(()))
        self._draw()
        made.append(self)

    def forward(self, obs):
        self.num_calls += 1
        self._draw()
        return self.layer(obs.to(self.layer.weight.dtype))

    def _draw(self):
        torch.rand(1), np.random.random(), random.random()


def draws():
    return torch.rand(1).item(), np.random.random(), random.random()


def test_a_trial_is_of_a_network_of_its_own_and_leaves_every_generator_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setitem(registry._encoders, "draws", Draws)
    config = Config().replace(env="toy_identity", encoder="draws", num_workers=1, device="cpu")
    memory = RunMemory.allocate(make_plan(config), RunDir(tmp_path))
    orders, _ = Pipe(duplex=False)
    args = memory.learner_args(0, readers=None, orders=orders, hyperparameters={}, goes_on_at=None)
    made.clear()
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    next_draws = draws()
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
    assert iteration_seconds(args, state_size=0) > 0
    [tried] = made
    assert tried.num_calls == 2
    assert draws() == next_draws
