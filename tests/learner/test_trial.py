"""The trial before the first iteration, on a network that notices what is done with it."""

import inspect
import random
import re

import numpy as np
import pytest
import torch
from allocated import allocate, learner_args
from torch import nn

from sf.config import Config
from sf.envs.errors import UsageError
from sf.learner import trial
from sf.learner.trial import iteration_seconds
from sf.model import registry

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


class Fails(Draws):
    def forward(self, obs):
        raise KeyError("width")


class SaysFour(Draws):
    def __init__(self, space, config):
        super().__init__(space, config)
        self.layer = nn.Linear(space.shape[0], 7)


def args_with(encoder, folder, monkeypatch):
    monkeypatch.setitem(registry._encoders, "own", encoder)
    config = Config().replace(env="toy_identity", encoder="own", num_workers=1, device="cpu")
    return learner_args(allocate(config, folder))


def test_a_network_whose_forward_raises_is_one_sentence_with_its_line(tmp_path, monkeypatch):
    line = inspect.getsourcelines(Fails.forward)[1] + 1
    sentence = f"the network fails on observations of zeros: KeyError: 'width' ({__file__}, line {line}): fix it there"
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        iteration_seconds(args_with(Fails, tmp_path, monkeypatch), state_size=0)


class HasAPartOfItsOwn(Draws):
    """The part says how many features it gives, and is called as no encoder is."""

    def __init__(self, space, config):
        super().__init__(space, config)
        self.part = Part()

    def forward(self, obs):
        return super().forward(obs) + self.part()


class Part(nn.Module):
    out_size = 4

    def forward(self):
        return 1.0


def test_what_an_encoder_does_with_its_own_parts_is_its_own_affair(tmp_path, monkeypatch):
    assert iteration_seconds(args_with(HasAPartOfItsOwn, tmp_path, monkeypatch), state_size=0) > 0


class GivesAPair(Draws):
    def forward(self, obs):
        return super().forward(obs), None


class LosesTheBatch(Draws):
    def forward(self, obs):
        return super().forward(obs).mean(0, keepdim=True)


class WantsTwo(Draws):
    def forward(self, obs, state):
        return super().forward(obs)


class Grows(Draws):
    def forward(self, obs):
        if not hasattr(self, "second"):
            self.second = nn.Linear(4, 4)
        return self.second(super().forward(obs))


class Replaces(Draws):
    def __init__(self, space, config):
        super().__init__(space, config)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, obs):
        features = super().forward(obs)
        self.mean = 0.9 * self.mean + 0.1 * features.detach().mean(0)
        return features


class Complex(Draws):
    def __init__(self, space, config):
        super().__init__(space, config)
        self.register_buffer("waves", torch.ones(4, dtype=torch.complex64))


@pytest.mark.parametrize(
    ("encoder", "sentence"),
    [
        (GivesAPair, r"the encoder GivesAPair returns a tuple in place of a tensor: return its features \[N, 4\]"),
        (LosesTheBatch, r"the encoder LosesTheBatch gives features of the shape \(1, 4\) for \d+ observations: return"),
        (WantsTwo, r"TypeError: WantsTwo.forward\(\) missing 1 required .*: fix the encoder WantsTwo"),
        (SaysFour, "the encoder SaysFour gives 7 features, but its out_size is 4: set it to 7"),
        (Grows, r"makes \S+second.bias, \S+second.weight in its first forward pass, .*: make all layers and"),
        (Replaces, r"puts another tensor in the place of \S+mean in its forward pass, .*: write into it"),
        (Complex, r"the network has \S+waves in complex64: keep its real and imaginary part as float32"),
    ],
)
def test_a_mistake_in_an_encoder_is_one_sentence(tmp_path, monkeypatch, encoder, sentence):
    with pytest.raises(UsageError, match=sentence):
        iteration_seconds(args_with(encoder, tmp_path, monkeypatch), state_size=0)


def test_a_trial_is_of_a_network_of_its_own_and_leaves_every_generator_as_it_was(tmp_path, monkeypatch):
    args = args_with(Draws, tmp_path, monkeypatch)
    made.clear()
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    next_draws = draws()
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
    assert iteration_seconds(args, state_size=0) > 0
    [tried] = made
    assert tried.num_calls == 1 + trial._TIMES
    assert draws() == next_draws


BY_PRIORITY = {"trajectory_priority": 0.5, "num_batches_per_epoch": 2}


@pytest.mark.parametrize(
    ("lr_schedule", "async_rl", "flags"),
    [
        ("constant", True, {}),
        ("linear", False, {}),
        ("cosine", True, BY_PRIORITY),
        ("kl_adaptive", True, {}),
        ("kl_adaptive", False, BY_PRIORITY),
    ],
)
def test_a_trial_can_be_made_with_every_schedule_and_draws_no_random_number(tmp_path, lr_schedule, async_rl, flags):
    config = Config().replace(
        env="toy_identity",
        num_workers=1,
        encoder_mlp_layers=(8,),
        device="cpu",
        async_rl=async_rl,
        lr_schedule=lr_schedule,
        num_epochs=2,
        train_for_env_steps=1000,
        **flags,
    )
    args = learner_args(allocate(config, tmp_path))
    before = torch.get_rng_state()
    assert iteration_seconds(args, state_size=0) > 0
    assert torch.equal(torch.get_rng_state(), before)
