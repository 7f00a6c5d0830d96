from itertools import accumulate

import numpy as np
import pytest
import torch

from sf.learner.batches.priorities import draw, priorities


def random_case(shape, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) > 0.4
    mask[0, 0] = True
    return rng.normal(size=shape) * rng.gamma(1.0, size=shape[1]), mask


def slow_priorities(advantage, mask, alpha, beta):
    num_steps, batch = advantage.shape
    sizes = []
    for b in range(batch):
        samples = [abs(advantage[t, b]) for t in range(num_steps) if mask[t, b]]
        sizes.append(sum(samples) / len(samples) if samples else None)
    known = [size for size in sizes if size is not None]
    least = 0.01 * sum(known) / len(known)
    powers = [0.0 if size is None else (size + least) ** alpha for size in sizes]
    probability = [power / sum(powers) for power in powers]
    return probability, [(batch * p) ** -beta if p else 0.0 for p in probability]


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (4, 9)])
@pytest.mark.parametrize(("alpha", "beta"), [(0.6, 0.4), (1.0, 1.0), (0.5, 0.0)])
def test_priorities_are_those_of_a_loop_over_samples(shape, alpha, beta):
    for seed in range(4):
        advantage, mask = random_case(shape, seed)
        if shape[1] > 2:
            mask[:, 2] = False  # a trajectory without samples
        spoiled = torch.from_numpy(np.where(mask, advantage, np.nan))
        found = priorities(spoiled, torch.from_numpy(mask), alpha=alpha, beta=beta)
        for ours, theirs in zip(found, slow_priorities(advantage, mask, alpha, beta), strict=True):
            assert ours.shape == (shape[1],)
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-10)
        assert found.probability.sum().item() == pytest.approx(1.0)


def test_the_weights_make_up_for_the_probabilities_fully_with_a_beta_of_1():
    advantage, mask = (torch.from_numpy(x) for x in random_case((4, 8), 1))
    mask[:] = True
    found = priorities(advantage, mask, alpha=1.0, beta=1.0)
    numbers = torch.randn(8, dtype=torch.float64)
    expectation = (found.probability * found.weight * numbers).sum()
    torch.testing.assert_close(expectation, numbers.mean())


@pytest.mark.parametrize(
    ("advantage", "mask"), [(torch.zeros(3, 4), torch.ones(3, 4).bool()), (torch.ones(3, 4), torch.zeros(3, 4).bool())]
)
def test_where_nothing_tells_trajectories_apart_they_are_alike(advantage, mask):
    found = priorities(advantage, mask, alpha=1.0, beta=1.0)
    torch.testing.assert_close(found.probability, torch.full((4,), 0.25))
    torch.testing.assert_close(found.weight, torch.ones(4))


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_an_advantage_that_is_not_finite_leaves_the_others_their_priorities(odd):
    advantage = torch.ones(3, 4)
    advantage[1, 2] = odd
    found = priorities(advantage, torch.ones(3, 4).bool(), alpha=1.0, beta=1.0)
    assert found.probability.isfinite().all()
    assert 0 < found.probability[2] < found.probability[1] == found.probability[0]


def test_what_is_drawn_is_where_the_sum_of_the_probabilities_exceeds_the_random_number():
    rng = np.random.default_rng(0)
    for _ in range(20):
        probability = rng.gamma(0.5, size=7)
        probability[[0, 3, 6]] = 0.0
        probability /= probability.sum()
        uniform = np.concatenate([rng.random(200), [0.0, 1 - 2**-53]])
        totals = list(accumulate(probability))
        expected = [next((index for index, total in enumerate(totals) if number < total), 6) for number in uniform]
        found = draw(torch.from_numpy(probability), torch.from_numpy(uniform)).tolist()
        assert found[:-1] == expected[:-1]
        assert 0 not in found
        assert 3 not in found
