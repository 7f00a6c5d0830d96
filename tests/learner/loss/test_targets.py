"""Advantages as the loss takes them, and targets of agents that wait."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sf.config import Config
from sf.learner.loss.gae import gae
from sf.learner.loss.masks import MaskedMean, has_outcome, value_across
from sf.learner.loss.targets import corrected, make_targets, moments, normalized
from sf.learner.loss.vtrace import vtrace


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


GAMMA, LAMBDA = 0.9, 0.8


class Trajectory:
    """Of one agent, T steps: each is (reward, acts, terminated)."""

    def __init__(self, rng: np.random.Generator, num_steps: int, waits: float) -> None:
        self.reward = rng.normal(size=num_steps)
        self.acts = rng.random(num_steps + 1) >= waits
        self.terminated = rng.random(num_steps) < 0.1
        self.value = rng.normal(size=num_steps + 1)
        self.log_rho = np.where(self.acts[:-1], rng.normal(size=num_steps), 0.0)  # a forced choice has no ratio

    def decisions(self) -> list[tuple[int, float, float, float]]:
        """For each decision whose outcome is there: its step, and reward, discount and value of what comes after it."""
        found = []
        for t in np.flatnonzero(self.acts[:-1]).tolist():
            reward, discount, s = 0.0, 1.0, t
            while True:
                reward += discount * self.reward[s]
                discount *= 0.0 if self.terminated[s] else GAMMA
                s += 1
                if discount == 0 or s == len(self.reward) or self.acts[s]:
                    break
            if discount == 0 or self.acts[s]:
                found.append((t, reward, discount, self.value[s]))
        return found


def _columns(trajectories: list[Trajectory], name: str) -> torch.Tensor:
    return torch.tensor(np.stack([getattr(each, name) for each in trajectories], axis=1))


@pytest.mark.parametrize("waits", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("rho_bar", [None, 1.0])
def test_waiting_is_as_if_its_steps_were_not_there(waits: float, rho_bar: float | None) -> None:
    """rho_bar: of V-trace; None: GAE."""
    rng = np.random.default_rng(3)
    trajectories = [Trajectory(rng, 24, waits) for _ in range(20)]
    reward, value, terminated, acts, log_rho = (
        _columns(trajectories, name) for name in ("reward", "value", "terminated", "acts", "log_rho")
    )
    trained = has_outcome(acts, terminated, torch.ones_like(terminated))
    valid = trained | ~acts[:-1]
    discount = GAMMA * (~terminated).double()
    if rho_bar is None:
        target, advantage = gae(reward, discount, value, valid, acts, lambda_=LAMBDA)
    else:
        target, advantage = vtrace(log_rho, reward, discount, value, valid, acts, rho_bar=rho_bar, lambda_=LAMBDA)
    assert target.shape == advantage.shape == (24, 20)
    num_decisions = 0
    for b, trajectory in enumerate(trajectories):
        error, decided = 0.0, trajectory.decisions()  # error: of the decision after this one, target - value
        assert np.flatnonzero(trained[:, b]).tolist() == [t for t, *_ in decided]
        for t, paid, decay, after in reversed(decided):
            own = trajectory.value[t]
            rho = 1.0 if rho_bar is None else min(rho_bar, np.exp(trajectory.log_rho[t]))
            expected = paid + decay * (after + LAMBDA * error) - own
            error = rho * (paid + decay * after - own) + decay * LAMBDA * rho * error
            assert advantage[t, b].item() == pytest.approx(expected)
            assert target[t, b].item() == pytest.approx(own + error)
            num_decisions += 1
    assert num_decisions > 20


def test_the_last_decision_before_the_end_of_a_trajectory_has_no_outcome_while_the_agent_waits() -> None:
    acts = torch.tensor([[1], [0], [1], [0], [0]], dtype=torch.bool)
    nothing_ends = torch.zeros(4, 1, dtype=torch.bool)
    assert has_outcome(acts, nothing_ends, ~nothing_ends).flatten().tolist() == [True, False, False, False]
    ends_while_waiting = torch.tensor([[0], [0], [0], [1]], dtype=torch.bool)
    assert has_outcome(acts, ends_while_waiting, ~nothing_ends).flatten().tolist() == [True, False, True, False]


@pytest.mark.parametrize("acts_at_the_end", [True, False])
def test_a_truncated_episode_is_bootstrapped_where_its_agent_acts_in_the_final_observation(acts_at_the_end) -> None:
    # The agent acts, waits, and is cut there; step 2 shows the final observation, and its action is ignored.
    acts = torch.tensor([[True], [False], [acts_at_the_end], [True], [True]])
    valid = torch.tensor([[True], [True], [False], [True]])
    terminated = torch.zeros(4, 1, dtype=torch.bool)
    trained = has_outcome(acts, terminated, valid)
    assert (trained & valid).flatten().tolist() == [acts_at_the_end, False, False, True]
    reward, value = torch.tensor([[1.0], [2.0], [0.0], [3.0]]), torch.tensor([[0.0], [9.0], [5.0], [0.0], [7.0]])
    across = value_across(value, reward, torch.full((4, 1), 0.5), valid, acts)
    assert across.flatten().tolist() == [0.0, 2 + 0.5 * 5.0, 5.0, 0.0, 7.0]


def test_numbers_and_weights_outside_of_the_mask_may_be_anything():
    mask, nan = torch.tensor([[True, False, True]]), float("nan")
    mean = MaskedMean(mask, torch.float32, torch.tensor([[2.0, nan, 1.0]]))
    assert mean(torch.tensor([[3.0, nan, 6.0]])).item() == 4.0


def test_a_team_is_as_probable_as_all_its_actions_and_lives_as_long_as_one_of_its_agents():
    """Two agents of a team, of which the second ends before the last step, and one of another."""
    torch.manual_seed(0)
    num_steps, teammates = 3, torch.tensor([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    valid = torch.tensor([[True, True, True], [True, True, True], [True, False, True]])
    terminated = torch.tensor([[False, False, False], [False, True, False], [True, False, False]])
    log_prob, behaviour = torch.randn(2, num_steps, 3)
    reward = torch.randn(num_steps, 2)[:, [0, 0, 1]]
    value = torch.randn(num_steps + 1, 2)[:, [0, 0, 1]]
    batch = SimpleNamespace(
        fields={},
        reward=reward,
        terminated=terminated,
        valid=valid,
        log_prob=behaviour,
        acts=lambda: None,
        discrete=None,
    )
    config = Config().replace(with_vtrace=True, gamma=0.9).learner
    found = make_targets(config, batch, log_prob, value, teammates)
    log_rho = torch.where(valid, log_prob - behaviour, 0.0)
    of_team = log_rho[:, :1] + log_rho[:, 1:2]
    discount = torch.tensor([[0.9], [0.9], [0.0]])  # the first agent plays until the end
    expected = vtrace(
        of_team,
        reward[:, :1],
        discount,
        value[:, :1],
        valid[:, :1],
        rho_bar=config.vtrace_rho,
        c_bar=config.vtrace_c,
        lambda_=config.gae_lambda,
    )
    torch.testing.assert_close(found.value[:, 0], expected.vs[:, 0])
    torch.testing.assert_close(found.advantage[:, 0], expected.advantage[:, 0])
    last = 1  # step of the second agent: what its team is worth afterwards counts
    rho = min(config.vtrace_rho, float(of_team[last].exp()))
    delta = rho * (reward[last, 0] + 0.9 * value[last + 1, 0] - value[last, 0])
    torch.testing.assert_close(found.value[last, 1], value[last, 0] + delta)
    alone = make_targets(config, batch, log_prob, value)
    torch.testing.assert_close(found.value[:, 2], alone.value[:, 2])
