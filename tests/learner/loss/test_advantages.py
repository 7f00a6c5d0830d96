import numpy as np
import pytest
import torch

from sf.learner.loss.advantages import corrected, moments, normalized
from sf.learner.loss.masked_mean import MaskedMean


def random_case(shape, seed):
    rng = np.random.default_rng(seed)
    return 3 + 5 * rng.normal(size=shape), rng.random(shape) > 0.4


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (6, 1), (6, 4)])
def test_moments_are_those_of_the_samples_that_count_whatever_the_others_are(shape):
    for seed in range(4):
        advantage, mask = random_case(shape, seed)
        returns = np.random.default_rng(seed + 10).normal(size=shape)
        mask[0, 0] = True
        kept = [advantage[i] for i in np.ndindex(shape) if mask[i]]
        mean = sum(kept) / len(kept)
        stddev = (sum((x - mean) ** 2 for x in kept) / len(kept)) ** 0.5
        spoiled, spoiled_returns = (torch.from_numpy(np.where(mask, x, np.nan)) for x in (advantage, returns))
        found = moments(spoiled, spoiled_returns, MaskedMean(torch.from_numpy(mask), torch.float64))
        assert found.mean.shape == found.stddev.shape == ()
        assert (found.mean.item(), found.stddev.item()) == pytest.approx((mean, stddev), abs=1e-12)
        rounding = 1e-5 * np.sqrt(np.mean(returns[mask] ** 2))
        expected = [(x - mean) / (stddev + rounding) for x in kept]
        np.testing.assert_allclose(normalized(spoiled, found).numpy()[mask], expected, atol=1e-9)


def test_moments_of_no_sample_are_0():
    mask = torch.zeros(2, 3, dtype=torch.bool)
    assert moments(torch.ones(2, 3), torch.ones(2, 3), MaskedMean(mask, torch.float32)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_advantages_that_differ_by_their_rounding_alone_become_almost_0(size):
    returns = torch.full((8, 8), size)
    advantage = size * (0.1 + 1e-7 * torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))
    mean = MaskedMean(torch.ones(8, 8, dtype=torch.bool), torch.float32)
    assert normalized(advantage, moments(advantage, returns, mean)).abs().max() < 0.1
    assert normalized(0 * advantage, moments(0 * advantage, 0 * returns, mean)).abs().max() == 0


def test_a_corrected_advantage_is_weighted_by_the_truncated_ratio_which_carries_no_gradient():
    log_prob = torch.tensor([[-1.0, -2.0, -0.5]], requires_grad=True)
    behaviour = torch.tensor([[-1.0, -1.0, -1.5]])
    found = corrected(torch.tensor([[2.0, 2.0, 2.0]]), log_prob, behaviour, rho_bar=1.5)
    assert not found.requires_grad
    expected = [2.0, 2.0 * np.exp(-1), 2.0 * 1.5]
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=1e-6)
