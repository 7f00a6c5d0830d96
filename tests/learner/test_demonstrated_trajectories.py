"""Demonstrated trajectories: which ones are read, and what they add to the loss and nothing else."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from ranks_in_threads import each_rank
from small_batches import CASES, FIRST, FLAGS, TURNS, VECTOR, B, T, make_batch

from sf.config import Config
from sf.envs import EnvSpec
from sf.learner.batches.batch import Batch
from sf.learner.batches.minibatches import Minibatch
from sf.learner.demonstrations.field import DEMONSTRATED
from sf.learner.demonstrations.sampler import DemonstrationSampler
from sf.learner.loss.minibatch_loss import minibatch_loss
from sf.learner.update import Updater
from sf.model.distributions import ActionDistribution
from sf.ranks.ranks import ALONE
from sf.shared.rows import slot_fields
from sf.system.arrays import SharedArrays

SPEC = EnvSpec(VECTOR, gym.spaces.Discrete(3), optional_fields=(DEMONSTRATED,))
LENGTHS = np.array([3, 9, 2, 6, 1, 5, 7, 2, 4, 8, 3, 5])  # rows of episodes; that with number 9 is held out


def numbered_rows(lengths=LENGTHS):
    """Rows whose observations and actions say where they are."""
    num = int(lengths.sum())
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ends = np.isin(np.arange(num) + 1, starts)
    arrays = {
        "obs/obs": np.repeat(np.arange(num, dtype=np.float32)[:, None], 5, 1),
        "discrete": (np.arange(num, dtype=np.int32) % 3)[:, None],
        "continuous": np.zeros((num, 0), np.float32),
        "reward": np.arange(num, dtype=np.float32),
        "terminated": np.roll(ends, -1),
        "first": np.isin(np.arange(num), starts),
        "valid": ~ends,
    }
    return SimpleNamespace(arrays=arrays, starts=starts, num_rows=num, num_episodes=len(lengths))


def empty_batch(num_trajectories=B):
    return Batch.empty(SharedArrays(slot_fields(SPEC, 1, T)), num_trajectories, 2, "cpu")


def test_trajectories_are_rows_in_their_order_from_anywhere_which_the_version_decides():
    rows, version = numbered_rows(), SimpleNamespace(now=4)
    sampler, again = (DemonstrationSampler(rows, (1, 2), lambda: version.now) for _ in range(2))
    batch, other, starts = empty_batch(40), empty_batch(40), set()
    for tensor in batch.tensors():
        tensor.fill_(1)
    sampler.fill(batch, 10)
    at = batch.obs["obs"][:, 10:, 0].long()
    assert torch.equal(at, (at[0] + torch.arange(T + 1)[:, None]) % rows.num_rows)
    starts = set(at[0].tolist())
    assert len(starts) > 15
    for name in ("discrete", "reward", "terminated", "first"):
        of_rows = torch.from_numpy(rows.arrays[name])
        assert torch.equal(
            batch.fields[name][:, 10:], of_rows[at[: len(batch.fields[name])]].to(batch.fields[name].dtype)
        )
    assert torch.equal(batch.fields[DEMONSTRATED][:, 10:], torch.from_numpy(rows.arrays["valid"])[at[:-1]])
    assert not batch.valid[:, 10:].any()
    assert not batch.log_prob[:, 10:].any()
    assert not batch.state[10:].any()
    assert all((tensor[:, :10] == 1).all() for tensor in batch.named().values())
    again.fill(other, 10)
    assert torch.equal(other.obs["obs"][:, 10:], batch.obs["obs"][:, 10:])
    sampler.fill(other, 10)  # a batch is filled while that before is trained on
    assert not torch.equal(other.obs["obs"][:, 10:], batch.obs["obs"][:, 10:])


def test_one_episode_in_ten_is_never_trained_on_alone_and_is_looked_at_once():
    rows = numbered_rows()
    sampler = DemonstrationSampler(rows, (1,), lambda: 7)
    held_out = set(range(rows.starts[9], rows.starts[10] - 1))  # without the final observation
    batch = empty_batch(200)
    sampler.fill_for_training(batch)
    trained = batch.obs["obs"][:-1, :, 0][batch.fields[DEMONSTRATED]].long().tolist()
    assert set(trained) == set(rows.arrays["valid"].nonzero()[0].tolist()) - held_out
    assert torch.equal(batch.valid, batch.fields[DEMONSTRATED])
    assert (batch.policy_version == 7).all()
    seen = []
    one = empty_batch(1)
    for _ in sampler.held_out(one, at_most=100):
        seen += one.obs["obs"][:-1, :, 0][one.fields[DEMONSTRATED]].long().tolist()
    assert sorted(seen) == sorted(held_out)
    assert not list(DemonstrationSampler(numbered_rows(LENGTHS[:1]), (1,), lambda: 7).held_out(one, 100))


def with_demonstrations(batch, num_demonstrated):
    """The last columns are demonstrations."""
    demonstrated = torch.zeros_like(batch.valid)
    demonstrated[:, -num_demonstrated:] = batch.valid[:, -num_demonstrated:]
    valid = batch.valid & ~demonstrated
    valid[:, -num_demonstrated:] = False
    return batch.replaced(valid=valid, **{DEMONSTRATED: demonstrated})


@pytest.mark.parametrize("case", [FIRST, TURNS])
@pytest.mark.parametrize("size", [1, 2])
def test_demonstrations_add_their_log_likelihood_to_the_loss_and_change_nothing_else(case, size):
    space, spec, flags = CASES[case]
    config = Config().replace(**FLAGS | flags | {"demonstrations": ("a",), "demo_coeff": 0.7})
    torch.manual_seed(0)
    updater = Updater(config, space, spec, bfloat16=False, device=torch.device("cpu"))
    without = config.replace(demonstrations=()).learner

    def loss_of(learner, batch, ranks=ALONE):
        out = updater.model.unroll(batch.obs, batch.state, batch.first)
        policy = ActionDistribution(spec, out.params)
        minibatch = Minibatch(batch, batch.valid, batch.log_prob)
        return minibatch_loss(learner, minibatch, policy, out.value, updater.model.value_norm, ranks)[0], policy

    wholes = [make_batch(space, spec, seed=rank) for rank in range(size)]
    batches = [with_demonstrations(each, 2) for each in wholes]
    own = [each.columns(torch.arange(B - 2)) for each in wholes]
    plain = each_rank(size, lambda ranks: loss_of(without, own[ranks.rank], ranks)[0].of_all_ranks)
    taught = each_rank(size, lambda ranks: loss_of(config.learner, batches[ranks.rank], ranks)[0])
    likely, num = 0.0, 0
    for batch in batches:
        policy = loss_of(config.learner, batch)[1]
        counts = batch.fields[DEMONSTRATED]
        if "action_mask" in batch.obs:
            counts = counts & policy.has_choice()
        likely += float(policy.log_prob(batch.discrete, batch.continuous)[counts].sum().detach())
        num += int(counts.sum())
    for before, after in zip(plain, taught, strict=True):
        assert float(after.of_all_ranks - before) == pytest.approx(-0.7 * likely / num, rel=1e-4)
        assert float(after.metrics["demonstrations/loss"]) == pytest.approx(-likely / num, rel=1e-4)


def test_alone_they_train_policy_and_values_and_neither_bonus_nor_surrogate_moves_the_policy():
    space, spec, flags = CASES[FIRST]
    config = Config().replace(**FLAGS | flags | {"demonstrations": ("a",), "exploration_loss_coeff": 5.0})
    batch = make_batch(space, spec, seed=1, draws_choices=True)
    batch = batch.replaced(**{DEMONSTRATED: batch.valid, "log_prob": torch.full_like(batch.log_prob, -90.0)})
    alone = {"policy_loss_coeff": 0.0, "exploration_loss_coeff": 0.0, "demo_coeff": 1.0}
    torch.manual_seed(0)
    updater = Updater(config, space, spec, bfloat16=False, device=torch.device("cpu"))
    losses = []
    for _ in range(30):
        batch.policy_version.fill_(updater.version)
        updater.train_iteration(batch, 0.0, annealed=alone)
        losses.append(updater.pop_metrics())
    for name in ("demonstrations/loss", "value_loss"):
        assert losses[-1][name] < losses[0][name] - 0.1 * abs(losses[0][name]), name
    assert losses[-1]["ratio_mean"] == pytest.approx(1.0)  # as if the actions were the policy's own
    assert losses[-1]["skipped_updates"] == 0


def test_their_weight_falls_in_the_first_half_of_a_run_with_an_end():
    config = Config().replace(demonstrations=("a",), demo_coeff=0.4, train_for_env_steps=1000, **FLAGS)
    space, spec, _ = CASES[FIRST]
    updater = Updater(config, space, spec, bfloat16=False, device=torch.device("cpu"))
    batch = with_demonstrations(make_batch(space, spec, seed=1), 1)
    found = []
    for share in (0.0, 0.25, 0.5, 0.9):
        updater.train_iteration(batch, share)
        found.append(updater.pop_metrics()["demonstrations/coeff"])
    assert found == pytest.approx([0.4, 0.2, 0.0, 0.0])
