import numpy as np
import pytest
import torch

from sf.learner.loss.gae import gae
from sf.learner.loss.vtrace import VTrace, vtrace

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


def test_with_discount_0_targets_are_rewards():
    case = random_case((6, 3))
    case |= {"log_rho": torch.zeros(6, 3).double(), "discount": torch.zeros(6, 3).double()}
    expected = torch.where(case["valid"], case["reward"], case["value"][:-1])
    torch.testing.assert_close(vtrace(**case).vs, expected)


def test_unclipped_on_policy_targets_are_discounted_sums_of_rewards_and_the_bootstrap_value():
    reward, value = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[9.0], [9.0], [9.0], [8.0]])
    zeros, ones = torch.zeros(3, 1), torch.ones(3, 1, dtype=torch.bool)
    vs = vtrace(zeros, reward, zeros + 0.5, value, ones).vs
    torch.testing.assert_close(vs, torch.tensor([[1 + 1 + 1 + 1.0], [2 + 2 + 2.0], [4 + 4.0]]))


def parts(case: dict[str, torch.Tensor], start: int, end: int) -> dict[str, torch.Tensor]:
    return {name: x[start : end + (name == "value")] for name, x in case.items()}


def test_cutting_at_a_termination_equals_two_rollouts():
    case = random_case((8, 3), seed=3)
    case["valid"] = torch.ones_like(case["valid"])
    case["discount"][4] = 0.0
    whole = vtrace(**case, rho_bar=1.5, lambda_=0.9)
    halves = [vtrace(**parts(case, *span), rho_bar=1.5, lambda_=0.9) for span in [(0, 5), (5, 8)]]
    assert_same(whole, tuple(torch.cat(pair) for pair in zip(*halves, strict=True)))


def test_cutting_at_a_truncation_equals_two_rollouts_of_which_the_first_ends_with_the_final_observation():
    case = random_case((8, 3), seed=4)
    case["valid"] = torch.ones_like(case["valid"])
    case["valid"][5] = False  # step 4 was truncated; row 5 is the final observation, its action was ignored
    whole = vtrace(**case, rho_bar=1.5, lambda_=0.9)
    before = vtrace(**parts(case, 0, 5), rho_bar=1.5, lambda_=0.9)
    after = vtrace(**parts(case, 6, 8), rho_bar=1.5, lambda_=0.9)
    assert_same(VTrace(*(x[:5] for x in whole)), before)
    assert_same(VTrace(*(x[6:] for x in whole)), after)
    torch.testing.assert_close(whole.vs[5], case["value"][5])
    assert (whole.advantage[5] == 0).all()
    rho = case["log_rho"][4].exp().clamp(max=1.5)
    v = case["value"]
    target = case["reward"][4] + case["discount"][4] * v[5]
    torch.testing.assert_close(whole.vs[4], v[4] + rho * (target - v[4]))


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
