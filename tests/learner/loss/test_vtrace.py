import numpy as np
import pytest
import torch

from sf.learner.loss.gae import gae
from sf.learner.loss.vtrace import vtrace

SHAPES = [(1, 1), (1, 5), (7, 1), (9, 4)]


def random_case(shape: tuple[int, int], seed: int = 0) -> dict[str, torch.Tensor]:
    """Rollouts with terminations, truncations and the ignored action after each, in float64."""
    num_steps, batch = shape
    rng = np.random.default_rng(seed)
    truncated = rng.random(shape) < 0.2
    valid = np.ones(shape, bool)
    valid[1:] = ~truncated[:-1]
    terminated = (rng.random(shape) < 0.2) & ~truncated & valid
    arrays = {
        "log_rho": rng.normal(size=shape),
        "reward": rng.normal(size=shape) * valid,
        "discount": 0.9 * (1 - terminated),
        "value": rng.normal(size=(num_steps + 1, batch)),
        "valid": valid,
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def slow_vtrace(log_rho, reward, discount, value, valid, rho_bar, c_bar, lambda_):
    """Remark 1's sum, one product of traces for each pair (s, t): no recursion in common with the code."""
    num_steps, batch = log_rho.shape
    vs, advantage = np.zeros((num_steps, batch)), np.zeros((num_steps, batch))
    for b in range(batch):
        rho = [min(rho_bar, np.exp(log_rho[t, b])) for t in range(num_steps)]
        c = [lambda_ * min(c_bar, np.exp(log_rho[t, b])) for t in range(num_steps)]
        for s in range(num_steps):
            vs[s, b] = value[s, b]
            for t in range(s, num_steps):
                if not valid[s : t + 1, b].all():
                    break
                weight = np.prod([discount[i, b] * c[i] for i in range(s, t)])
                vs[s, b] += weight * rho[t] * (reward[t, b] + discount[t, b] * value[t + 1, b] - value[t, b])
        for s in range(num_steps):
            next_vs = vs[s + 1, b] if s + 1 < num_steps else value[num_steps, b]
            target = lambda_ * next_vs + (1 - lambda_) * value[s + 1, b]
            if valid[s, b]:
                advantage[s, b] = reward[s, b] + discount[s, b] * target - value[s, b]
    return vs, advantage


def assert_same(result: tuple, expected: tuple) -> None:
    for ours, theirs in zip(result, expected, strict=True):
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("rho_bar", "c_bar", "lambda_"), [(1.0, 1.0, 1.0), (2.0, 0.7, 0.9), (1.3, 1.3, 0.0)])
def test_vtrace_is_the_sum_over_traces_of_the_paper(shape, rho_bar, c_bar, lambda_):
    for seed in range(5):
        case = random_case(shape, seed)
        result = vtrace(**case, rho_bar=rho_bar, c_bar=c_bar, lambda_=lambda_)
        expected = slow_vtrace(*(x.numpy() for x in case.values()), rho_bar, c_bar, lambda_)
        assert_same(result, expected)


@pytest.mark.parametrize("lambda_", [0.0, 0.6, 1.0])
def test_vtrace_on_policy_is_gae(lambda_):
    case = random_case((9, 4))
    case["log_rho"] = torch.zeros_like(case["log_rho"])
    on_policy = vtrace(**case, lambda_=lambda_)
    del case["log_rho"]
    assert_same(on_policy, gae(**case, lambda_=lambda_))


def parts(case: dict[str, torch.Tensor], start: int, end: int) -> dict[str, torch.Tensor]:
    return {name: x[start : end + (name == "value")] for name, x in case.items()}


def test_garbage_where_the_action_was_ignored_changes_nothing():
    case = random_case((8, 3), seed=5)
    clean = vtrace(**case)
    for name in ("log_rho", "reward"):
        case[name] = torch.where(case["valid"], case[name], torch.nan)
    assert not case["valid"].all()
    assert_same(vtrace(**case), clean)


def test_targets_carry_no_gradients():
    case = random_case((3, 2))
    case["value"].requires_grad_()
    assert not any(x.requires_grad for x in vtrace(**case))
