"""Which weights which optimiser has, and what its steps are, against loops in NumPy."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from sf.config import LearnerConfig, ModelConfig
from sf.envs import ActionSpec
from sf.learner.optimizer.learning_rate import LearningRate
from sf.learner.optimizer.optimizer import Optimizer, hidden_matrices
from sf.model.building import build_model

with_muon = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
SPACE = gym.spaces.Dict(
    {
        "image": gym.spaces.Box(0, 255, (36, 36, 3), np.uint8),
        "codes": gym.spaces.Box(0, 7, (5, 5), np.int32),
        "numbers": gym.spaces.Box(-1, 1, (5,), np.float32),
    }
)
NOT_SKIPPED, SKIPPED = torch.zeros(()), torch.ones(())


def make_network(**flags):
    torch.manual_seed(0)
    widths = {"encoder_mlp_layers": (8,), "encoder_conv_mlp_layers": (6,), "rnn_size": 4}
    return build_model(ModelConfig(**widths, **flags), SPACE, ActionSpec((3,), 1))


class Plain(nn.Module):
    """A network of somebody's own, with all kinds of weights."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.ModuleDict(
            {"table": nn.Embedding(5, 4), "wide": nn.Linear(4, 7), "tall": nn.Linear(7, 3), "norm": nn.LayerNorm(3)}
        )
        self.value_head = nn.Linear(3, 1)


def names_of(network, weights):
    return {name for name, weight in network.named_parameters() if any(weight is one for one in weights)}


@pytest.mark.parametrize("core", ["gru", "lstm", "mingru"])
def test_matrices_below_the_heads_are_hidden_ones(core):
    network = make_network(core=core, share_critic=False, layer_norm=True)
    of_core = ["core.weight_ih"] + ["core.weight_hh"] * (core != "mingru")
    expected = {
        f"trunk.{tower}.{name}"
        for tower in ("actor", "critic")
        for name in (*(f"encoders.{idx}.linear.0.weight" for idx in range(3)), *of_core)
    }
    assert names_of(network, hidden_matrices(network)) == expected
    plain = Plain()
    assert names_of(plain, hidden_matrices(plain)) == {"trunk.wide.weight", "trunk.tall.weight"}


def with_gradients(network, seed):
    generator = torch.Generator().manual_seed(seed)
    for weight in network.parameters():
        weight.grad = torch.randn(weight.shape, generator=generator)
    return {name: weight.grad.numpy().astype(np.float64) for name, weight in network.named_parameters()}


def weights_of(network):
    return {name: weight.detach().numpy().astype(np.float64) for name, weight in network.named_parameters()}


def slow_orthogonal(matrix):
    """Five Newton-Schulz iterations, with the coefficients of Jordan et al. 2024."""
    x = matrix / max(np.linalg.norm(matrix), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def test_weight_decay_shrinks_all_weights_by_the_learning_rate_beside_the_steps_of_adam():
    plain, decayed = Plain(), Plain()
    rate, decay = 0.01, 0.3
    optimizers = [
        Optimizer(LearnerConfig(learning_rate=rate, weight_decay=share), network)
        for network, share in ((plain, 0.0), (decayed, decay))
    ]
    before = weights_of(plain)
    for network, optimizer in zip((plain, decayed), optimizers, strict=True):
        with_gradients(network, 0)
        optimizer.step(NOT_SKIPPED)
    for name, weight in weights_of(decayed).items():
        np.testing.assert_allclose(weight, weights_of(plain)[name] - rate * decay * before[name], rtol=1e-4, atol=1e-6)
    kept = weights_of(decayed)
    with_gradients(decayed, 1)
    optimizers[1].step(SKIPPED)
    assert all(np.array_equal(weight, kept[name]) for name, weight in weights_of(decayed).items())


@with_muon
def test_the_steps_of_muon_are_orthogonal_and_of_the_size_of_adams():
    network, rate = Plain(), 0.01
    optimizer = Optimizer(LearnerConfig(optimizer="muon", learning_rate=rate), network)
    momentum = {"trunk.wide.weight": 0.0, "trunk.tall.weight": 0.0}
    for step in range(3):
        before, gradients = weights_of(network), with_gradients(network, step)
        optimizer.step(NOT_SKIPPED)
        after = weights_of(network)
        for name, average in momentum.items():
            momentum[name] = 0.95 * average + 0.05 * gradients[name]
            update = slow_orthogonal(0.05 * gradients[name] + 0.95 * momentum[name])
            expected = -rate * 0.2 * max(update.shape) ** 0.5 * update
            change = after[name] - before[name]
            np.testing.assert_allclose(change, expected, atol=0.02 * rate)  # it is computed in bfloat16
            assert 0.1 * rate < np.sqrt(np.mean(change**2)) < 0.3 * rate


@with_muon
def test_all_other_weights_have_the_steps_of_adam_to_the_bit():
    networks = [Plain(), Plain()]
    flags = {"learning_rate": 0.01, "adam_beta1": 0.8, "adam_beta2": 0.95, "adam_eps": 1e-4}
    optimizers = [
        Optimizer(LearnerConfig(optimizer=name, **flags), network)
        for name, network in zip(("adam", "muon"), networks, strict=True)
    ]
    for step in range(3):
        for network, optimizer in zip(networks, optimizers, strict=True):
            with_gradients(network, step)
            optimizer.step(NOT_SKIPPED)
    for name, weight in networks[0].named_parameters():
        other = networks[1].get_parameter(name)
        assert torch.equal(weight, other) == (name not in {"trunk.wide.weight", "trunk.tall.weight"}), name


@with_muon
def test_a_skipped_step_of_muon_leaves_weights_and_momentum_as_they_were_whatever_the_gradients():
    network = Plain()
    optimizer = Optimizer(LearnerConfig(optimizer="muon"), network)
    with_gradients(network, 0)
    optimizer.step(NOT_SKIPPED)
    state = [*network.parameters(), *(m for w in network.parameters() for m in optimizer.moments(w).values())]
    before = [tensor.detach().clone() for tensor in state]
    for spoiled in (float("nan"), float("inf"), 1.0):
        for weight in network.parameters():
            weight.grad.fill_(spoiled)
        optimizer.step(SKIPPED)
        assert all(torch.equal(old, new) for old, new in zip(before, state, strict=True))


@with_muon
def test_a_frozen_matrix_is_not_touched_and_has_no_momentum():
    network = Plain()
    optimizer = Optimizer(LearnerConfig(optimizer="muon"), network)
    with_gradients(network, 0)
    frozen = network.trunk["wide"].weight
    frozen.grad, before = None, frozen.detach().clone()
    optimizer.step(NOT_SKIPPED)
    assert torch.equal(frozen, before)
    assert not optimizer.moments(frozen)
    assert optimizer.moments(network.trunk["tall"].weight)


@with_muon
def test_both_parts_have_the_same_learning_rate():
    network = Plain()
    optimizer = Optimizer(LearnerConfig(optimizer="muon", learning_rate=0.5), network)
    rate = LearningRate(optimizer)
    rate.ceiling = 0.1
    rate.set(0.3)
    assert rate.value == 0.1
    assert [part.param_groups[0]["lr"] for part in optimizer._parts()] == [0.1, 0.1]
    rate.set(0.0)
    before = weights_of(network)
    with_gradients(network, 0)
    optimizer.step(NOT_SKIPPED)
    assert all(np.array_equal(before[name], after) for name, after in weights_of(network).items())


@with_muon
def test_a_network_without_hidden_matrices_has_adam_alone():
    network = Plain()
    network.trunk = nn.ModuleDict({"norm": nn.LayerNorm(3)})
    optimizer = Optimizer(LearnerConfig(optimizer="muon"), network)
    with_gradients(network, 0)
    optimizer.step(NOT_SKIPPED)
    assert all(optimizer.moments(weight).keys() == {"step", "exp_avg", "exp_avg_sq"} for weight in network.parameters())


@with_muon
def test_muon_decays_its_matrices_and_leaves_the_rest_to_adam():
    networks = [Plain(), Plain()]
    before = weights_of(networks[0])
    for network, decay in zip(networks, (0.0, 0.3), strict=True):
        optimizer = Optimizer(LearnerConfig(optimizer="muon", learning_rate=0.01, weight_decay=decay), network)
        with_gradients(network, 0)
        optimizer.step(NOT_SKIPPED)
    plain, decayed = (weights_of(network) for network in networks)
    for name, weight in decayed.items():
        np.testing.assert_allclose(weight, plain[name] - 0.003 * before[name], rtol=1e-4, atol=1e-6)
