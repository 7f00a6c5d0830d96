import math

import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence

from sf.envs.spaces.actions import ActionSpec
from sf.model.distributions import IMPOSSIBLE, ActionDistribution

SPECS = [
    ActionSpec((3,), 0),
    ActionSpec((3, 3), 0),
    ActionSpec((3, 2, 2, 8, 21), 0),
    ActionSpec((), 3),
    ActionSpec((4, 2), 2),
]


def random_params(spec: ActionSpec, *batch: int) -> torch.Tensor:
    return torch.randn(*batch, sum(spec.discrete_sizes) + 2 * spec.num_continuous)


def torch_heads(spec: ActionSpec, params: torch.Tensor) -> tuple[list[Categorical], Normal]:
    sizes = [*spec.discrete_sizes, spec.num_continuous, spec.num_continuous]
    *logits, mean, log_stddev = params.split(sizes, dim=-1)
    return [Categorical(logits=x) for x in logits], Normal(mean, log_stddev.exp())


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("batch", [(5,), (3, 2)])
def test_everything_and_its_gradients_are_as_in_torch_distributions(spec, batch):
    torch.manual_seed(0)
    params = random_params(spec, *batch)
    ours, theirs = params.clone().requires_grad_(), params.clone().requires_grad_()
    distribution, (heads, normal) = ActionDistribution(spec, ours), torch_heads(spec, theirs)
    discrete, continuous = distribution.sample()
    assert discrete.shape == (*batch, len(spec.discrete_sizes))
    assert continuous.shape == (*batch, spec.num_continuous)
    assert discrete.dtype == torch.int32
    assert continuous.dtype == torch.float32
    continuous = continuous.detach()

    def total(of_heads, of_normal):
        return sum(of_heads, torch.zeros(batch)) + of_normal.sum(-1)

    log_prob = total([head.log_prob(discrete[..., d]) for d, head in enumerate(heads)], normal.log_prob(continuous))
    entropy = total([head.entropy() for head in heads], normal.entropy())
    torch.testing.assert_close(distribution.log_prob(discrete, continuous), log_prob)
    torch.testing.assert_close(distribution.entropy(), entropy)
    (distribution.log_prob(discrete, continuous) + distribution.entropy()).sum().backward()
    (log_prob + entropy).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_samples_have_the_frequencies_of_their_probabilities():
    spec, generator = ActionSpec((3, 2), 1), torch.Generator().manual_seed(0)
    probs = [torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.9, 0.1])]
    params = torch.cat([*(p.log() for p in probs), torch.tensor([2.0, -1.0])]).expand(100_000, -1)
    discrete, continuous = ActionDistribution(spec, params).sample(generator)
    for d, p in enumerate(probs):
        torch.testing.assert_close(discrete[:, d].bincount() / 100_000, p, atol=0.01, rtol=0)
    torch.testing.assert_close(continuous.mean(), torch.tensor(2.0), atol=0.01, rtol=0)
    torch.testing.assert_close(continuous.std().log(), torch.tensor(-1.0), atol=0.01, rtol=0)


def test_heads_and_actors_are_sampled_independently():
    params = torch.zeros(50_000, 4)
    discrete, _ = ActionDistribution(ActionSpec((2, 2), 0), params).sample(torch.Generator().manual_seed(0))
    joint = (2 * discrete[:, 0] + discrete[:, 1]).bincount() / 50_000
    torch.testing.assert_close(joint, torch.full((4,), 0.25), atol=0.01, rtol=0)


def test_the_same_generator_state_gives_the_same_actions():
    spec = ActionSpec((3, 8), 2)
    params = random_params(spec, 64)
    draws = [ActionDistribution(spec, params).sample(torch.Generator().manual_seed(7)) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*draws, strict=True))


def test_the_mode_is_the_most_probable_action():
    params = torch.tensor([[0.0, 2.0, 1.0, 5.0, 4.0, 0.3, -1.0]])
    discrete, continuous = ActionDistribution(ActionSpec((3, 2), 1), params).mode()
    assert discrete.tolist() == [[1, 0]]
    torch.testing.assert_close(continuous, torch.tensor([[0.3]]))


def test_a_short_head_never_samples_its_padding_even_where_its_logits_are_extreme():
    spec = ActionSpec((2, 5), 0)
    params = torch.tensor([-1e4, -1e4, 0.0, 0.0, 0.0, 0.0, 0.0]).expand(10_000, -1)
    discrete, _ = ActionDistribution(spec, params).sample()
    assert discrete[:, 0].max() == 1
    assert ActionDistribution(spec, params).entropy().isfinite().all()


def test_a_distribution_made_in_inference_mode_leaves_nothing_that_breaks_training():
    spec = ActionSpec((2, 6, 3), 0)
    params = random_params(spec, 4)
    with torch.inference_mode():
        ActionDistribution(spec, params).sample()
    ActionDistribution(spec, params.requires_grad_()).entropy().sum().backward()
    assert params.grad.abs().sum() > 0


@pytest.mark.parametrize("spec", SPECS)
def test_the_divergence_from_another_one_is_as_in_torch_distributions(spec):
    torch.manual_seed(0)
    params, other = random_params(spec, 5), random_params(spec, 5)
    (heads, normal), (other_heads, other_normal) = torch_heads(spec, params), torch_heads(spec, other)
    expected = sum((kl_divergence(*pair) for pair in zip(other_heads, heads, strict=True)), torch.zeros(5))
    expected = expected + kl_divergence(other_normal, normal).sum(-1)
    torch.testing.assert_close(ActionDistribution(spec, params).divergence_from(other), expected)


def test_the_divergence_is_finite_where_a_choice_is_impossible_in_either():
    spec = ActionSpec((3,), 0)
    first, rest = torch.tensor([0.0, IMPOSSIBLE, IMPOSSIBLE]), torch.tensor([IMPOSSIBLE, 0.0, 0.0])
    assert ActionDistribution(spec, first).divergence_from(rest) == pytest.approx(math.log(1e9))
    certain = ActionDistribution(spec, torch.zeros(3)).divergence_from(first)
    assert certain == pytest.approx(math.log(3))
