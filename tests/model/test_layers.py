import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.model.building import build_model
from sf.model.layers import ResidualLayer, left_for_later, mlp, orthogonal

ACTIVATIONS = {"elu": lambda x: np.where(x > 0, x, np.expm1(x)), "relu": lambda x: x * (x > 0), "tanh": np.tanh}


def slow_mlp(x, layers, act, with_norm):
    """layers: (weight, bias, gain, shift) of each."""
    for weight, bias, gain, shift in layers:
        rows = []
        for row in x:
            a = np.array([sum(w * number for w, number in zip(ws, row, strict=True)) for ws in weight]) + bias
            if with_norm:
                mean = sum(a) / len(a)
                stddev = (sum((number - mean) ** 2 for number in a) / len(a) + 1e-5) ** 0.5
                a = gain * (a - mean) / stddev + shift
            rows.append(act(a))
        x = np.array(rows)
    return x


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("nonlinearity", ACTIVATIONS)
def test_linear_layers_are_normalised_before_each_activation_or_not_at_all(nonlinearity, layer_norm):
    torch.manual_seed(0)
    network, out_size = mlp(4, (6, 3), nonlinearity, layer_norm=layer_norm)
    network.double()
    layers = []
    for linear in (module for module in network if isinstance(module, nn.Linear)):
        norm = network[list(network).index(linear) + 1]
        assert isinstance(norm, nn.LayerNorm) == layer_norm
        nn.init.normal_(linear.bias)
        parts = [linear.weight, linear.bias]
        if layer_norm:
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
            parts += [norm.weight, norm.bias]
        layers.append([part.detach().numpy() for part in parts] + [None] * (4 - len(parts)))
    x = torch.randn(5, 4, dtype=torch.float64)
    out = network(x.clone())
    assert out.shape == (5, out_size) == (5, 3)
    expected = slow_mlp(x.numpy(), layers, ACTIVATIONS[nonlinearity], layer_norm)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("share_critic", [True, False])
def test_each_tower_of_a_network_has_norms_which_learn(share_critic):
    spaces = {
        "image": gym.spaces.Box(0, 255, (36, 36, 3), np.uint8),
        "codes": gym.spaces.Box(0, 7, (5, 5), np.int32),
        "numbers": gym.spaces.Box(-1, 1, (5,), np.float32),
    }
    config = ModelConfig(
        layer_norm=True, share_critic=share_critic, encoder_mlp_layers=(8, 8), encoder_conv_mlp_layers=(8,)
    )
    torch.manual_seed(0)
    model = build_model(config, gym.spaces.Dict(spaces), ActionSpec((3,), 0))
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    assert len(norms) == (4 if share_critic else 8)
    obs = {key: torch.from_numpy(np.stack([box.sample() for _ in range(6)])) for key, box in spaces.items()}
    obs = {key: value.unflatten(0, (3, 2)) for key, value in obs.items()}
    out = model.unroll(obs, torch.zeros(2, 0), torch.zeros(3, 2, dtype=torch.bool))
    (out.params.square().sum() + out.value.sum()).backward()
    assert all(norm.weight.grad.abs().sum() > 0 and norm.bias.grad.abs().sum() > 0 for norm in norms)


def test_orthogonal_weights_that_are_left_for_later_are_those_that_no_other_rule_fills():
    with left_for_later() as waiting:
        plain, zeroed = orthogonal(nn.Linear(3, 4), 0.5), orthogonal(nn.Conv2d(2, 2, 3))
        nn.init.zeros_(zeroed.weight)
    assert [(weight is plain.weight, gain) for weight, gain in waiting] == [(True, 0.5)]
    later = orthogonal(nn.Linear(3, 4))
    torch.testing.assert_close(later.weight.T @ later.weight, 2 * torch.eye(3))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_residual_layers_begin_as_the_identity_and_learn(layer_norm):
    network, out_size = mlp(4, (6, 6, 6), "tanh", layer_norm=layer_norm, num_residual=2)
    plain = network[: 3 if layer_norm else 2]
    x = torch.randn(5, 4)
    assert out_size == 6
    torch.testing.assert_close(network(x), plain(x))
    network(x).sum().backward()
    assert all(layer.branch[-1].weight.grad.any() for layer in network if isinstance(layer, ResidualLayer))
