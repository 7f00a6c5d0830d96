"""The statistics of several ranks are those of the samples of all."""

import numpy as np
import one_rank
import pytest
import torch
from network_numbers import numbers_of
from ranks_in_threads import each_rank

from sf.model.normalizers import RunningMoments


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_moments_of_ranks_are_those_of_the_samples_of_all(shape):
    generator = torch.Generator().manual_seed(0)
    # Of each update and rank; the ranks have other numbers of samples, and around other means.
    sizes = [(5, 20), (0, 7), (0, 0), (30, 1)]
    samples = [
        [torch.randn(num, *shape, generator=generator) * (1 + rank) + 5 * rank + when for rank, num in enumerate(of)]
        for when, of in enumerate(sizes)
    ]
    masks = [[torch.rand(len(x), generator=generator) < 0.8 for x in of] for of in samples]

    def moments_of(ranks):
        moments = RunningMoments(shape)
        moments.ranks = ranks
        for x, mask in zip(samples, masks, strict=True):
            moments.update(x[ranks.rank], mask[ranks.rank])
        return moments

    first, second = each_rank(2, moments_of)
    everything = torch.cat([x[mask] for of in zip(samples, masks, strict=True) for x, mask in zip(*of, strict=True)])
    for moments in (first, second):
        assert moments.count == len(everything)
        np.testing.assert_allclose(moments.mean, everything.double().mean(0), rtol=1e-12)
        np.testing.assert_allclose(moments.var, everything.double().var(0, correction=0), rtol=1e-12)
    assert all(torch.equal(a, b) for a, b in zip(first.buffers(), second.buffers(), strict=True))


@pytest.mark.parametrize("over", ["minibatch", "iteration"])
def test_two_ranks_take_the_steps_of_one_learner_with_all_samples(over, monkeypatch):
    monkeypatch.setattr(torch, "randperm", torch.arange)  # each learner shuffles its own samples: so they are cut alike
    monkeypatch.setattr(one_rank, "NUM_ITERATIONS", 3)
    flags = {"num_batches_per_epoch": 2, "normalize_advantages_over": over}
    weights, metrics = one_rank.trained(flags)
    (weights_0, metrics_0), (weights_1, _) = each_rank(2, lambda ranks: one_rank.trained(flags, ranks.rank, 2, ranks))
    assert torch.equal(weights_0, weights_1)
    torch.testing.assert_close(weights_0, weights, rtol=1e-5, atol=1e-5)
    assert (weights - numbers_of(one_rank.make_updater(one_rank.CONFIG).model)).abs().max() > 0.001
    for iteration, of_one in metrics.items():
        of_all = of_one.keys() - {
            "lag_mean",
            "lag_max",
            "masked_share",
            "sample_reuse",
        }  # these are of the samples of each rank
        found = {key: metrics_0[iteration][key] for key in of_all}
        assert found == pytest.approx({key: of_one[key] for key in of_all}, rel=1e-3, abs=1e-4)
