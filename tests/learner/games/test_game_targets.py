"""Targets of games equal those of GAE over the whole game, whose formula is another."""

import numpy as np
import pytest
import torch

from sf.learner.games.targets import game_targets
from sf.learner.loss.gae import gae


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
def test_targets_are_the_lambda_returns_of_gae(lambda_, seed):
    rng = np.random.default_rng(seed)
    num = int(rng.integers(1, 12))
    reward, value = rng.normal(size=(2, num)).astype(np.float32)
    acts = rng.random(num) < 0.6
    found = game_targets(reward, value, acts, gamma=0.9, lambda_=lambda_)
    assert found.shape == (num,)
    discount = np.full((num, 1), 0.9, np.float32)
    discount[-1] = 0.0
    expected = gae(
        *(torch.from_numpy(x) for x in (reward[:, None], discount)),
        torch.from_numpy(np.append(value, np.float32(0.0))[:, None]),
        torch.ones(num, 1, dtype=torch.bool),
        torch.from_numpy(np.append(acts, True)[:, None]),
        lambda_=lambda_,
    )
    np.testing.assert_allclose(found[acts], expected.returns[:, 0].numpy()[acts], rtol=1e-5, atol=1e-6)


def test_lambda_of_1_gives_the_outcome_whatever_the_values_are():
    value, acts = np.array([9.0, -9.0, 9.0], np.float32), np.array([True, False, True])
    found = game_targets(np.array([0.0, 0.0, -1.0], np.float32), value, acts, gamma=0.5, lambda_=1.0)
    assert found.tolist() == [-0.25, -0.5, -1.0]
