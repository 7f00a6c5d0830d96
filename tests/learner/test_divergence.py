"""A loss or gradients that are not finite: such a step changes nothing and is counted; many end in a rollback."""

import math
from itertools import groupby

import gymnasium as gym
import numpy as np
import pytest
import small_batches
import torch
from each_step import EachStep
from hypothesis import given
from hypothesis import strategies as st
from network_numbers import numbers_of
from small_batches import B, T
from torch.utils._python_dispatch import TorchDispatchMode

from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.divergence import MAX_ROLLBACKS, RollbackBudget
from sf.learner.training_metrics import SkippedUpdates
from sf.learner.update import Updater
from sf.system.processes.child import FinalError

CPU = torch.device("cpu")
OBS_SPACE = gym.spaces.Dict({"vector": gym.spaces.Box(-1, 1, (5,), np.float32)})
ACTION = ActionSpec((3,), 1)
CONFIG = Config().replace(
    rollout=T,
    batch_size=T * B,
    core="gru",
    rnn_size=8,
    encoder_mlp_layers=(16,),
    normalize_input=True,
    normalize_returns=True,
    learning_rate=0.01,
    train_for_seconds=1000,
)


without_muon = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
MUON = pytest.param("muon", marks=without_muon)


def make_updater(**flags):
    torch.manual_seed(0)
    return Updater(CONFIG.replace(**flags), OBS_SPACE, ACTION, bfloat16=False, device=CPU)


def make_batch(seed):
    batch = small_batches.make_batch(OBS_SPACE, ACTION, seed, state_size=8, draws_choices=True)
    batch.valid.fill_(True)
    return batch


def train(updater, batch, share_done=0.0):
    updater.train_iteration(batch, share_done)


def snapshot(updater):
    """Weights, moments, their step counts, and the statistics of both normalisers."""
    return {name: value.clone() for name, value in updater.tensors().items() if name != "rng"}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def spoil_gradient(updater, batch):
    parameter = updater.model.value_head.weight
    handle = parameter.register_hook(lambda grad: (handle.remove(), grad * math.inf)[1])


def spoil_loss(updater, batch):
    step = updater._optimizer_step
    loss_of_batch = step._loss

    def spoiled(one, *args):
        step._loss = loss_of_batch
        result, target = loss_of_batch(one, *args)
        return result._replace(loss=result.loss + math.nan, of_all_ranks=result.of_all_ranks + math.nan), target

    step._loss = spoiled


FAULTS = {
    "an observation is NaN": lambda _, batch: batch.obs["vector"][1, 2, 3:4].fill_(math.nan),
    "all observations are NaN": lambda _, batch: batch.obs["vector"].fill_(math.nan),
    "a reward is NaN": lambda _, batch: batch.reward[1, 2:3].fill_(math.nan),
    "a log-probability is NaN": lambda _, batch: batch.log_prob[1, 2:3].fill_(math.nan),
    "a recurrent state is infinite": lambda _, batch: batch.state[1, 2:3].fill_(math.inf),
    "a gradient alone is infinite": spoil_gradient,
    "the loss alone is NaN": spoil_loss,
}


@pytest.fixture(params=FAULTS.values(), ids=[name.replace(" ", "-") for name in FAULTS])
def spoil(request):
    return request.param


@pytest.mark.parametrize("optimizer", ["adam", MUON])
@pytest.mark.parametrize("num_before", [0, 2])
def test_a_step_that_is_not_finite_changes_nothing(spoil, num_before, optimizer):
    updater, bad = make_updater(normalize_input=False, optimizer=optimizer), make_batch(9)
    for seed in range(num_before):
        train(updater, make_batch(seed))
    before = snapshot(updater)
    spoil(updater, bad)
    train(updater, bad)
    after = snapshot(updater)
    moments = {name: value for name, value in after.items() if name.startswith("optimizer/") and name not in before}
    assert bool(moments) == (num_before == 0)  # they are made in the first step
    assert not any(value.any() for value in moments.values())
    assert same(before, {name: value for name, value in after.items() if name not in moments})
    assert updater.skipped.total == updater.skipped.in_row == 1


@pytest.mark.parametrize("optimizer", ["adam", MUON])
def test_training_goes_on_as_if_the_bad_batch_had_never_been(spoil, optimizer):
    one, other = (make_updater(normalize_input=False, optimizer=optimizer) for _ in range(2))
    for updater in (one, other):
        train(updater, make_batch(0))
    bad = make_batch(9)
    spoil(one, bad)
    train(one, bad)
    assert one.skipped.in_row == 1
    for updater in (one, other):
        train(updater, make_batch(1))
    assert same(snapshot(one), snapshot(other))
    assert (one.skipped.total, one.skipped.in_row) == (1, 0)
    assert one.version == other.version + 1


def test_weights_that_are_published_are_always_finite(spoil):
    updater, published = make_updater(num_epochs=2, num_batches_per_epoch=2, batch_size=T * B // 2), []
    for seed in range(4):
        batch = make_batch(seed)
        if seed in (1, 2):
            spoil(updater, batch)
        updater.train_iteration(batch, 0, EachStep(lambda: published.append(numbers_of(updater.model))))
    assert len(published) == 16
    assert all(flat.isfinite().all() for flat in published)
    assert not torch.equal(published[0], published[-1])
    assert updater.is_finite()
    assert updater.skipped.total >= 2


class _RecordsReads(TorchDispatchMode):
    """Notes when Python asks for the number in a tensor: with a GPU, that waits for it."""

    def __init__(self):
        super().__init__()
        self.num_reads = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.num_reads += func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("optimizer", ["adam", MUON])
def test_skipping_reads_nothing_from_the_device(optimizer):
    updater, bad = make_updater(optimizer=optimizer), make_batch(0)
    bad.reward.fill_(math.nan)
    with _RecordsReads() as mode:
        for batch in (bad, make_batch(1), bad):
            train(updater, batch)
        assert mode.num_reads == 0
        assert updater.skipped.in_row == 1
        assert mode.num_reads == 1


def test_metrics_hold_the_count_and_means_of_what_was_finite():
    updater, bad = make_updater(), make_batch(1)
    train(updater, make_batch(0))
    loss = updater.pop_metrics()["loss"]
    bad.reward.fill_(math.nan)
    train(updater, bad)
    metrics = updater.pop_metrics()
    assert metrics["skipped_updates"] == 1
    assert "loss" not in metrics
    assert updater.metrics.not_finite() == ["policy_loss", "value_loss", "loss", "grad_norm"]
    updater = make_updater()
    train(updater, make_batch(0))
    train(updater, bad)
    metrics = updater.pop_metrics()
    assert metrics["loss"] == loss
    assert all(math.isfinite(value) for value in metrics.values())
    train(updater, make_batch(2))
    assert updater.metrics.not_finite() == []


@given(st.lists(st.booleans(), max_size=30), st.integers(0, 10))
def test_all_skipped_updates_and_the_latest_in_a_row_are_counted(skips, total_before):
    skipped = SkippedUpdates(CPU, total_before)
    for is_skipped in skips:
        skipped.count(torch.tensor(float(is_skipped)))
    runs = [(is_skipped, len(list(group))) for is_skipped, group in groupby(skips)]
    assert skipped.total == total_before + sum(skips)
    assert skipped.in_row == (runs[-1][1] if runs and runs[-1][0] else 0)


def test_the_count_survives_a_checkpoint():
    updater, bad = make_updater(), make_batch(0)
    bad.reward.fill_(math.nan)
    train(updater, bad)
    resumed = make_updater()
    resumed.load(updater.tensors(), updater.state())
    train(resumed, bad)
    assert resumed.skipped.total == 2


def test_stop_ends_the_run_with_one_sentence_that_says_what_to_do():
    budget = RollbackBudget(Config().replace(on_divergence="stop", max_skipped_updates=4).supervision)
    assert [budget.is_due(num_in_row) for num_in_row in (0, 3, 4, 5)] == [False, False, True, True]
    with pytest.raises(FinalError) as error:
        budget.spend(4, ["value_loss", "grad_norm"], 0.002)
    message = str(error.value)
    assert "4 updates in a row" in message
    assert "(value_loss, grad_norm)" in message
    assert "--learning_rate (it is 0.002)" in message
    assert "\n" not in message


def test_rollbacks_without_a_checkpoint_in_between_end_the_run():
    budget = RollbackBudget(Config().supervision)
    for _ in range(3):
        for _ in range(MAX_ROLLBACKS):
            budget.spend(10, ["loss"], 1e-4)
        budget.note_checkpoint()
    for _ in range(MAX_ROLLBACKS):
        budget.spend(10, ["loss"], 1e-4)
    with pytest.raises(FinalError, match=f"after {MAX_ROLLBACKS} rollbacks without a checkpoint"):
        budget.spend(10, ["loss"], 1e-4)


def roll_back(diverged, saved, factor, **flags):
    """What the learner does: the state of a checkpoint in the place of the updater that has diverged."""
    updater = make_updater(**flags)
    updater.load(*saved)
    updater.take_over(diverged, factor)
    return updater


@pytest.mark.parametrize("optimizer", ["adam", MUON])
@pytest.mark.parametrize("lr_schedule", ["cosine", "kl_adaptive"])
def test_each_rollback_lowers_the_learning_rate_and_versions_and_counts_grow(lr_schedule, optimizer):
    flags = {"lr_schedule": lr_schedule, "optimizer": optimizer}
    flags |= {"lr_schedule_kl_threshold": 100.0}  # nothing reaches it: the rate would grow
    updater, bad = make_updater(**flags), make_batch(9)
    train(updater, make_batch(0), share_done=0.1)
    saved, weights = (snapshot(updater) | {"rng": torch.get_rng_state()}, updater.state()), snapshot(updater)
    rate_of_checkpoint, expected = updater.learning_rate, updater.learning_rate
    bad.reward.fill_(math.nan)
    for num_rollbacks in (1, 2, 3):
        train(updater, make_batch(1), share_done=0.1)
        train(updater, bad, share_done=0.1)
        last_version = updater.version
        updater = roll_back(updater, saved, 0.5, **flags)
        assert updater.version > last_version  # which other weights have been published with
        assert (updater.skipped.total, updater.skipped.in_row) == (num_rollbacks, 0)
        assert same(snapshot(updater), weights)
        expected *= 0.5
        assert updater.learning_rate == pytest.approx(expected)
        train(updater, make_batch(2), share_done=0.1)
        assert updater.learning_rate == pytest.approx(expected)  # no schedule raises it again
    assert updater.learning_rate == pytest.approx(rate_of_checkpoint / 8)


@pytest.mark.parametrize("lr_schedule", ["constant", "cosine", "kl_adaptive"])
def test_a_lowered_learning_rate_survives_a_checkpoint(lr_schedule):
    flags = {"lr_schedule": lr_schedule, "lr_schedule_kl_threshold": 100.0}
    updater = make_updater(**flags)
    train(updater, make_batch(0))
    updater = roll_back(updater, (updater.tensors(), updater.state()), 0.25, **flags)
    resumed = make_updater(**flags)
    resumed.load(updater.tensors(), updater.state())
    assert resumed.learning_rate == updater.learning_rate
    train(resumed, make_batch(1))
    assert resumed.learning_rate == pytest.approx(updater.learning_rate)
    lower_still = make_updater(**flags, learning_rate=1e-5)
    lower_still.load(updater.tensors(), updater.state())
    assert lower_still.learning_rate == pytest.approx(1e-5)
