"""What an epoch is cut into: everything once, and what belongs together stays together."""

from collections.abc import Iterator

import pytest
import torch

from sf.learner.batches import minibatches
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Minibatch, Targets
from sf.learner.batches.priorities import Priorities

T, B = 6, 4


def numbered() -> Minibatch:
    """Every step is a number, all that belongs to it has, and the last observation of a trajectory has its negative."""
    number = torch.arange(1, T * B + 1).view(T, B)
    obs = torch.cat((number, -number[-1:]))
    some = number % 3 == 0
    batch = Batch(
        obs={"number": obs.float()[..., None], "other": obs[..., None, None]},
        first=torch.cat((some, some[:1])),
        state=number[0].float()[:, None],
        discrete=number.int()[..., None],
        continuous=number.float()[..., None],
        log_prob=number.float(),
        value=number.float(),
        policy_version=number,
        reward=number.float(),
        terminated=some,
        valid=some,
    )
    return Minibatch(batch, some, number.float(), Targets(number.float(), number.float()))


def cut(with_steps: bool, count: int) -> Iterator[Minibatch]:
    """As an epoch: with targets it is cut into steps."""
    whole = numbered()
    return parts_of(whole if with_steps else whole._replace(targets=None), count)


def parts_of(whole: Minibatch, count: int) -> Iterator[Minibatch]:
    return (part.taken() for part in minibatches.cut(whole, count))


def numbers_of(part: Minibatch) -> torch.Tensor:
    """[T, B] of all that is in it, which must be the same everywhere."""
    batch = part.batch
    number = batch.reward
    numbered = (*(part.targets or ()), part.proximal_log_prob, batch.log_prob, batch.value, batch.policy_version)
    with_axes = (batch.discrete, batch.continuous, batch.obs["number"][:-1], batch.obs["other"][:-1, ..., 0])
    for other in (*numbered, *(tensor.squeeze(-1) for tensor in with_axes)):
        assert torch.equal(other.float(), number)
    for flag in (part.mask, batch.valid, batch.terminated):
        assert torch.equal(flag, number % 3 == 0)
    return number


@pytest.mark.parametrize("with_steps", [True, False])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_step_comes_once_an_epoch_and_in_another_order_in_the_next(count, with_steps):
    torch.manual_seed(0)
    epochs = [[numbers_of(part) for part in cut(with_steps, count)] for _ in range(2)]
    for parts in epochs:
        assert [part.numel() for part in parts] == [T * B // count] * count
        assert torch.cat([part.flatten() for part in parts]).sort()[0].tolist() == list(range(1, T * B + 1))
    first, second = (torch.cat(parts, dim=1) for parts in epochs)
    assert (count == 1 and not with_steps) == torch.equal(first, second)


def test_trajectories_stay_whole_and_have_their_targets_made_anew():
    for part in cut(with_steps=False, count=2):
        numbers = numbers_of(part)
        assert (numbers.diff(dim=0) == B).all()
        assert torch.equal(part.batch.obs["number"][-1, :, 0], -numbers[-1])
        assert torch.equal(part.batch.state[:, 0], numbers[0])
        assert part.targets is None
        assert torch.equal(part.batch.first[:-1], part.mask)


def test_steps_of_all_trajectories_are_as_one():
    for part in cut(with_steps=True, count=2):
        numbers = numbers_of(part)
        assert numbers.shape == (T * B // 2, 1)
        assert len({int(number) % B for number in numbers}) > 1
        assert (numbers.diff(dim=0) != B).any()
        assert part.batch.first.shape == (T * B // 2 + 1, 1)
        assert part.batch.state.shape == (1, 1)


@pytest.mark.parametrize("count", [2, 4])
def test_with_priorities_whole_trajectories_are_drawn_again_and_again_and_bring_their_weights(count):
    torch.manual_seed(0)
    probability, weight = torch.tensor([0.0, 0.7, 0.2, 0.1]), torch.arange(1.0, B + 1)
    whole = numbered()._replace(targets=None, priorities=Priorities(probability, weight))
    drawn = []
    for part in (part for _ in range(200) for part in parts_of(whole, count)):
        numbers = numbers_of(part)
        assert numbers.shape == (T, B // count)
        assert (numbers.diff(dim=0) == B).all()
        assert torch.equal(part.priorities.weight, numbers[0])
        drawn += numbers[0].tolist()
    assert len(drawn) == 200 * B
    shares = torch.tensor(drawn).long().bincount(minlength=B + 1)[1:] / len(drawn)
    torch.testing.assert_close(shares, probability, atol=0.06, rtol=0)


@pytest.mark.parametrize("count", [1, 4])
def test_steps_in_which_an_agent_waits_are_in_no_minibatch(count):
    whole = numbered()
    number = whole.batch.reward
    mask = torch.stack((torch.cat((number % 2, number[-1:])), torch.zeros(T + 1, B)), dim=-1)  # even numbers wait
    obs = {**whole.batch.obs, "action_mask": mask.to(torch.int8)}
    batch = whole.batch.replaced(obs=obs, continuous=torch.zeros(T, B, 0))
    torch.manual_seed(0)
    parts = [part.batch.reward for part in parts_of(whole._replace(batch=batch), count)]
    assert [part.numel() for part in parts] == [T * B // 2 // count] * count
    assert torch.cat([part.flatten() for part in parts]).sort()[0].tolist() == list(range(1, T * B, 2))


def test_an_agent_with_continuous_actions_never_waits_whatever_its_mask():
    whole = numbered()
    obs = {**whole.batch.obs, "action_mask": torch.zeros(T + 1, B, 2, dtype=torch.int8)}
    assert whole.batch.replaced(obs=obs).acts() is None
    assert not whole.batch.replaced(obs=obs, continuous=torch.zeros(T, B, 0)).acts().any()


def test_an_epoch_without_enough_decisions_has_all_of_its_minibatches():
    whole = numbered()
    nobody_acts = torch.zeros(T + 1, B, 2, dtype=torch.int8)
    batch = whole.batch.replaced(obs={**whole.batch.obs, "action_mask": nobody_acts}, continuous=torch.zeros(T, B, 0))
    assert len([*minibatches.cut(whole._replace(batch=batch), 4)]) == 4


@pytest.mark.parametrize("with_steps", [True, False])
def test_agents_of_an_environment_stay_together(with_steps):
    whole = numbered() if with_steps else numbered()._replace(targets=None)
    together = 2
    seen = []
    for part in minibatches.cut(whole, 2, together):
        numbers = numbers_of(part.taken())
        pairs = numbers.flatten().view(-1, together)
        assert (pairs[:, 0] % together == 1).all()
        assert (pairs[:, 1] == pairs[:, 0] + 1).all()
        seen += numbers.flatten().tolist()
    assert sorted(seen) == list(range(1, T * B + 1))
