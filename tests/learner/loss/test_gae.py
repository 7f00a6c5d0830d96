import numpy as np
import pytest
import torch

from sf.learner.loss.gae import gae


def random_case(num_steps: int, batch: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "reward": rng.normal(size=(num_steps, batch)),
        "discount": 0.9 * (rng.random((num_steps, batch)) > 0.2),
        "value": rng.normal(size=(num_steps + 1, batch)),
        "valid": rng.random((num_steps, batch)) > 0.2,
    }


def slow_gae(reward, discount, value, valid, lambda_):
    """The sum of equation 16 over all later steps, up to the first that is not valid."""
    num_steps, batch = reward.shape
    advantage = np.zeros((num_steps, batch))
    for b in range(batch):
        for s in range(num_steps):
            for t in range(s, num_steps):
                if not valid[s : t + 1, b].all():
                    break
                weight = np.prod(discount[s:t, b] * lambda_)
                advantage[s, b] += weight * (reward[t, b] + discount[t, b] * value[t + 1, b] - value[t, b])
    return value[:-1] + advantage, advantage


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (6, 1), (8, 5)])
@pytest.mark.parametrize("lambda_", [0.0, 0.5, 1.0])
def test_gae_is_the_sum_of_the_paper(shape, lambda_):
    for seed in range(5):
        case = random_case(*shape, seed)
        result = gae(**{name: torch.from_numpy(x) for name, x in case.items()}, lambda_=lambda_)
        for ours, theirs in zip(result, slow_gae(**case, lambda_=lambda_), strict=True):
            assert tuple(ours.shape) == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_a_truncated_step_is_bootstrapped_with_the_value_of_the_final_observation():
    reward, value = torch.tensor([[1.0], [0.0], [7.0]]), torch.tensor([[2.0], [10.0], [3.0], [5.0]])
    valid = torch.tensor([[True], [False], [True]])  # step 0 was truncated
    returns, advantage = gae(reward, torch.full((3, 1), 0.5), value, valid, lambda_=1.0)
    torch.testing.assert_close(returns, torch.tensor([[1 + 0.5 * 10], [10.0], [7 + 0.5 * 5]]))
    torch.testing.assert_close(advantage, torch.tensor([[4.0], [0.0], [6.5]]))
