"""A policy that plays agents of two kinds plays the smaller one as a policy of that kind alone does."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from kinds_env import FLY, MOVE, TwoKinds, box

from sf.config import ModelConfig
from sf.envs import ActionSpec
from sf.envs.groups.kinds import AgentSpaces
from sf.envs.spaces.identity import Identity
from sf.model.building import build_model
from sf.model.distributions import ActionDistribution

N = 300
LENGTH, LONGER = 2, 4  # of the observations
INPUTS = [0, 1, 4, 5]  # of the union's network that the smaller kind has: its numbers, and which kind it is
OUTPUTS = [0, 1, 7]  # of the union's two heads of 3 and 4 choices and three means


def networks(**flags):
    """A network of both kinds, and one of the smaller kind with the same weights; the spaces of both."""
    env = TwoKinds((box(LENGTH), MOVE), (box(LONGER), FLY))
    union = AgentSpaces.of("two", env, env.possible_agents, strict=False)
    alone = gym.spaces.Dict(obs=box(LENGTH), agent_kind=Identity(2))
    config = ModelConfig(encoder_mlp_layers=(8,), rnn_size=5, normalize_input=False, **flags)
    torch.manual_seed(0)
    both = build_model(config, union.obs, ActionSpec.of(union.action))
    small = build_model(config, alone, ActionSpec.of(MOVE))
    with torch.no_grad():
        both.policy_head.weight.mul_(200)
        both.log_stddev.copy_(torch.tensor([-0.3, 0.2, 0.7]))
    small.load_state_dict({name: part(name, tensor) for name, tensor in both.state_dict().items()})
    return both, small, union


def part(name, tensor):
    """Returns those numbers of a tensor of the union's network that the smaller kind has."""
    if name == "log_stddev":
        return tensor[:1]
    if name.startswith("policy_head"):
        return tensor[OUTPUTS]
    return tensor[:, INPUTS] if tensor.shape[-1] == LONGER + 2 else tensor


def observations(union, num):
    """Returns what the smaller kind sees in the union, and alone."""
    rows = {key: np.full((num, *each.shape), 77, each.dtype) for key, each in union.obs.items()}
    numbers = np.random.default_rng(0).standard_normal((num, LENGTH)).astype(np.float32)
    for n in range(num):
        union.of_agents[0].write(numbers[n], rows, n)
    seen = {key: torch.from_numpy(each) for key, each in rows.items()}
    return seen, {"obs": torch.from_numpy(numbers), "agent_kind": seen["agent_kind"]}


@pytest.mark.parametrize("flags", [{}, {"core": "gru", "share_critic": False}], ids=["none", "gru"])
def test_log_probability_entropy_and_gradient_are_those_of_the_kind_alone(flags):
    both, small, union = networks(**flags)
    seen, own = observations(union, N)
    state, first = torch.zeros(N, both.state_size), torch.ones(N, dtype=torch.bool)
    out, expected = both.step(seen, state, first), small.step(own, state, first)
    torch.testing.assert_close(out.value, expected.value)
    policy = ActionDistribution(ActionSpec.of(union.action), out.params)
    alone = ActionDistribution(ActionSpec.of(MOVE), expected.params)
    with torch.no_grad():
        discrete, continuous = policy.sample()
    assert set(discrete[:, 0].tolist()) == {0, 1}
    assert not discrete[:, 1].any()
    assert continuous[:, 0].std() > 0
    assert not continuous[:, 1:].any()
    assert not policy.mode()[1][:, 1:].any()
    log_prob, entropy = policy.log_prob(discrete, continuous), policy.entropy()
    torch.testing.assert_close(log_prob, alone.log_prob(discrete[:, :1], continuous[:, :1]))
    torch.testing.assert_close(entropy, alone.entropy())
    assert policy.has_choice().all()

    (log_prob + entropy + out.value).sum().backward()
    (alone.log_prob(discrete[:, :1], continuous[:, :1]) + alone.entropy() + expected.value).sum().backward()
    gradients = {name: weight.grad for name, weight in small.named_parameters()}
    for name, weight in both.named_parameters():
        torch.testing.assert_close(part(name, weight.grad), gradients[name], rtol=1e-4, atol=1e-3)
        of_others = weight.grad.abs().sum() - part(name, weight.grad).abs().sum()
        assert of_others.abs() <= 1e-5 * weight.grad.abs().sum()


def test_a_kind_without_any_numbers_has_only_its_choices():
    env = TwoKinds((box(2), gym.spaces.Discrete(1)), (box(2), MOVE))
    spaces = AgentSpaces.of("two", env, env.possible_agents, strict=False)
    spec = ActionSpec.of(spaces.action)
    model = build_model(ModelConfig(encoder_mlp_layers=(8,)), spaces.obs, spec)
    rows = {key: np.zeros((2, *each.shape), each.dtype) for key, each in spaces.obs.items()}
    for n in range(2):
        spaces.of_agents[n].write(np.zeros(2, np.float32), rows, n)
    seen = {key: torch.from_numpy(each) for key, each in rows.items()}
    policy = ActionDistribution(spec, model.step(seen, torch.zeros(2, 0), torch.ones(2, dtype=torch.bool)).params)
    assert policy.has_choice().tolist() == [False, True]
    assert policy.entropy()[0] == 0
    assert policy.entropy()[1] > 0


@pytest.mark.parametrize(
    "beside", [box(3), gym.spaces.Box(0, 255, (36, 36, 1), np.uint8)], ids=["a vector", "a picture"]
)
def test_what_an_observation_means_depends_on_who_sees_it(beside):
    """Heads are linear, so each feature has to depend on both."""
    spaces = gym.spaces.Dict(obs=beside, agent_index=Identity(2))
    model = build_model(ModelConfig(encoder_mlp_layers=(8,), normalize_input=False), spaces, ActionSpec((3,), 0))
    torch.manual_seed(0)
    seen = torch.randint(0, 255, (2, 1, *beside.shape)).to(torch.from_numpy(np.zeros(0, beside.dtype)).dtype)
    params = [
        [
            model.step(
                {"obs": obs, "agent_index": who[None]}, torch.zeros(1, 0), torch.ones(1, dtype=torch.bool)
            ).params
            for who in torch.eye(2)
        ]
        for obs in seen
    ]
    of_identity = [second - first for first, second in params]
    assert (of_identity[1] - of_identity[0]).abs().max() > 1e-6
