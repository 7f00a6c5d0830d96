"""Training steps: what is saved is enough to go on to the bit, and what is masked teaches nothing."""

import gymnasium as gym
import numpy as np
import pytest
import small_batches
import torch
from each_step import EachStep
from network_numbers import numbers_of
from small_batches import B, T
from torch import nn

from sf.config import Config
from sf.envs import ActionSpec
from sf.learner.batches.priorities import priorities
from sf.learner.callback import NO_CALLBACK
from sf.learner.checkpoints.tensors import never_finite
from sf.learner.compiled import outcome
from sf.learner.loss import minibatch_loss
from sf.learner.loss.masks import has_outcome
from sf.learner.loss.ppo import ppo_loss
from sf.learner.loss.targets import make_targets
from sf.learner.optimizer import learning_rate
from sf.learner.update import Updater

OBS_SPACE = gym.spaces.Dict(
    {"image": gym.spaces.Box(0, 255, (36, 36, 3), np.uint8), "vector": gym.spaces.Box(-1, 1, (5,), np.float32)}
)
ACTION = ActionSpec((3, 2), 1)
CONFIG = Config().replace(
    rollout=T,
    batch_size=T * B // 2,
    num_batches_per_epoch=2,
    num_epochs=2,
    core="gru",
    rnn_size=8,
    encoder_conv_mlp_layers=(16,),
    encoder_mlp_layers=(16,),
    normalize_input=True,
    normalize_returns=True,
    learning_rate=0.01,
)


without_muon = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this PyTorch has no Muon")
MUON = pytest.param("muon", marks=without_muon)


def make_updater(**flags):
    torch.manual_seed(0)
    return Updater(CONFIG.replace(**flags), OBS_SPACE, ACTION, bfloat16=False, device=torch.device("cpu"))


def make_batch(seed, version=1):
    return small_batches.make_batch(OBS_SPACE, ACTION, seed, version, state_size=8, draws_choices=True)


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize(
    "flags",
    [
        {"lr_schedule": "cosine", "layer_norm": True, "value_scale": "symlog", "normalize_returns": False},
        {"lr_schedule": "kl_adaptive", "lr_adaptive_advantage_share": 1.0},
        {"exploration_loss_coeff": 0.4, "exploration_loss_coeff_final": 0.1, "train_for_env_steps": 1000},
        {"trajectory_priority": 0.8, "normalize_advantages_over": "iteration"},
        pytest.param({"optimizer": "muon"}, marks=without_muon),
    ],
)
def test_a_restored_updater_goes_on_as_if_it_had_never_stopped(flags):
    flags = {"train_for_seconds": 1000, **flags}
    one = make_updater(**flags)
    for seed in range(3):
        one.train_iteration(make_batch(seed, one.version), seed / 4)
    # A file holds contiguous tensors, whatever the memory format was.
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in one.tensors().items()}
    other = make_updater(**flags)
    other.load(tensors, one.state())
    assert other.version == one.version == 13
    assert other.learning_rate == one.learning_rate
    rng = torch.get_rng_state()
    for updater in (one, other):
        torch.set_rng_state(rng)
        updater.train_iteration(make_batch(9, updater.version), 0.75)
    assert one.learning_rate == other.learning_rate
    assert same(one.tensors(), other.tensors())


@pytest.mark.parametrize("optimizer", ["adam", MUON])
def test_a_policy_that_copies_another_goes_on_as_that_one_would(optimizer):
    one, other = (make_updater(optimizer=optimizer, learning_rate=rate) for rate in (0.01, 0.002))
    for seed, updater in enumerate((one, other, one, other)):
        updater.train_iteration(make_batch(seed, updater.version), 0)
    other.copy({name: tensor.detach().clone() for name, tensor in one.tensors().items()})
    other.set_hyperparameters({"learning_rate": 0.01})  # of the other policy, or a mutation of them
    rng = torch.get_rng_state()
    for updater in (one, other):
        torch.set_rng_state(rng)
        updater.train_iteration(make_batch(9, updater.version), 0)
    assert same(one.tensors(), other.tensors())


@pytest.mark.parametrize("optimizer", ["adam", MUON])
def test_a_policy_that_begins_anew_has_no_moments_of_its_earlier_self(optimizer):
    fresh, trained = (make_updater(optimizer=optimizer) for _ in range(2))
    beginning = {name: tensor.detach().clone() for name, tensor in fresh.tensors().items()}
    assert not any(name.startswith("optimizer/") for name in beginning)
    for seed in range(2):
        trained.train_iteration(make_batch(seed, trained.version), 0)
    trained.copy(beginning)
    rng = torch.get_rng_state()
    for updater in (fresh, trained):
        torch.set_rng_state(rng)
        updater.train_iteration(make_batch(9, updater.version), 0)
    assert same(fresh.tensors(), trained.tensors())


@pytest.mark.parametrize("is_resumed", [False, True])
def test_what_an_earlier_policy_has_acted_teaches_the_one_that_took_its_place_nothing(is_resumed):
    updater = make_updater(max_policy_lag=1000)
    updater.train_iteration(make_batch(0, updater.version), 0)
    updater.pop_metrics()
    version_before = updater.version
    updater.copy({name: tensor.detach().clone() for name, tensor in updater.tensors().items()})
    if is_resumed:
        saved = {name: tensor.detach().clone() for name, tensor in updater.tensors().items()}, updater.state()
        updater = make_updater(max_policy_lag=1000)
        updater.load(*saved)
    for version, is_trained_on in [(version_before, False), (version_before + 1, True)]:
        before = [parameter.detach().clone() for parameter in updater.model.parameters()]
        updater.train_iteration(make_batch(1, version), 0)
        stays = [torch.equal(p, q) for p, q in zip(updater.model.parameters(), before, strict=True)]
        assert (not any(stays)) if is_trained_on else all(stays)
        assert updater.pop_metrics()["masked_share"] == 1.0 - is_trained_on


@pytest.mark.parametrize(("flag", "rate"), [(0.01, 0.0015), (0.002, 0.002)])
def test_an_adaptive_rate_goes_on_unless_the_flag_is_another_one(flag, rate):
    begun, resumed = (
        make_updater(lr_schedule="kl_adaptive"),
        make_updater(lr_schedule="kl_adaptive", learning_rate=flag),
    )
    begun._learning_rate.set(0.0015)
    resumed.load({name: tensor.detach().clone() for name, tensor in begun.tensors().items()}, begun.state())
    assert resumed.learning_rate == pytest.approx(rate)


def test_a_copy_is_free_of_the_rate_at_which_the_weights_from_before_diverged():
    diverged, successor = make_updater(), make_updater()
    successor.take_over(diverged, learning_rate_factor=0.1)
    assert successor.learning_rate == pytest.approx(0.001)
    successor.copy({name: tensor.detach().clone() for name, tensor in diverged.tensors().items()})
    successor.set_hyperparameters({"learning_rate": 0.01})
    assert successor.learning_rate == 0.01


@pytest.mark.parametrize("optimizer", ["adam", MUON])
def test_steps_without_a_sample_move_no_weight_and_no_learning_rate(optimizer):
    """Momentum would move the weights, and a KL divergence of 0 raise the rate."""
    updater = make_updater(optimizer=optimizer, lr_schedule="kl_adaptive", max_policy_lag=4, lr_adaptive_max=1.0)
    updater.train_iteration(make_batch(0), 0)
    updater.version, rate = 100, updater.learning_rate
    before = {name: p.clone() for name, p in updater.model.named_parameters()}
    updater.train_iteration(make_batch(1, version=1), 0)
    assert all(torch.equal(p, before[name]) for name, p in updater.model.named_parameters())
    assert updater.learning_rate == rate
    metrics = updater.pop_metrics()
    assert metrics["skipped_updates"] == 0
    assert metrics["masked_share"] == pytest.approx(0.5)  # all of the second iteration, which is too old
    updater.train_iteration(make_batch(2, updater.version), 0)
    assert not all(torch.equal(p, before[name]) for name, p in updater.model.named_parameters())


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_steps_without_a_choice_move_no_learning_rate(share):
    """Nobody knows how far the policy has moved, and nothing how much its advantages are worth."""
    flags = {"lr_schedule": "kl_adaptive", "lr_adaptive_max": 1.0, "lr_adaptive_advantage_share": share}
    space = gym.spaces.Dict({**OBS_SPACE.spaces, "action_mask": gym.spaces.Box(0, 1, (5,), np.int8)})
    config = CONFIG.replace(**flags)
    updater = Updater(config, space, ActionSpec((3, 2), 0), bfloat16=False, device=torch.device("cpu"))
    batch = make_batch(0)
    batch.obs["action_mask"] = torch.tensor([1, 0, 0, 1, 0], dtype=torch.int8).expand(T + 1, B, 5)
    batch.discrete.zero_()
    batch = batch.replaced(continuous=torch.zeros(T, B, 0), log_prob=torch.zeros(T, B))
    rate, before = updater.learning_rate, updater.model.value_head.weight.clone()
    updater.train_iteration(batch, 0)
    assert updater.learning_rate == rate
    assert not torch.equal(updater.model.value_head.weight, before)
    metrics = updater.pop_metrics()
    assert metrics["num_choices"] == 0
    assert metrics["num_samples"] > 0


def test_a_buffer_that_is_infinite_by_intention_keeps_nobody_from_saving():
    updater = make_updater()
    assert updater.is_finite()
    updater.model.trunk.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(3))
    assert not updater.is_finite()  # it has come to be so
    updater._never_finite = never_finite(updater.model)
    assert updater.is_finite()
    weight = next(updater.model.parameters())
    for broken in (torch.nan, torch.inf):
        with torch.no_grad():
            weight.view(-1)[0] = broken
        assert not updater.is_finite()


def test_what_is_infinite_by_intention_is_so_under_each_of_its_names_and_where_it_is_frozen():
    updater = make_updater()
    mask = nn.Module()
    mask.register_buffer("forbidden", torch.full((2,), -torch.inf))
    updater.model.trunk.register_module("first", mask)
    updater.model.trunk.register_module("second", mask)
    frozen = nn.Parameter(torch.full((2,), -torch.inf), requires_grad=False)
    updater.model.trunk.register_parameter("frozen", frozen)
    trained = updater.model.value_head.bias
    with torch.no_grad():
        trained[0] = torch.inf
    names = never_finite(updater.model)
    assert sorted(name.rpartition("trunk.")[2] for name in names) == ["first.forbidden", "frozen", "second.forbidden"]


@pytest.mark.parametrize(
    ("found", "agrees"), [([-torch.inf, 1.0], True), ([-torch.inf, 1.5], False), ([0.0, 1.0], False)]
)
def test_infinite_numbers_agree_with_infinite_ones(found, agrees):
    mask, other = {"mask": torch.tensor([-torch.inf, 1.0])}, {"mask": torch.tensor(found)}
    assert outcome._add_the_same(other, mask, mask, 1.0, outcome.TOLERANCE[True]) is agrees


@pytest.mark.parametrize(("rate", "factor"), [(0.1, 1 / 1.5), (1e-6, 1.5)])
def test_the_adaptive_rate_changes_once_an_iteration_by_how_far_that_moved_the_policy(rate, factor):
    updater = make_updater(lr_schedule="kl_adaptive", learning_rate=rate, lr_adaptive_max=1.0)
    rates = []
    # The first of its two epochs begins where the policy has not moved at all, however high the rate is.
    updater.train_iteration(make_batch(0), 0, EachStep(lambda: rates.append(updater.learning_rate)))
    assert rates == [rate] * 4
    assert updater.learning_rate == pytest.approx(factor * rate)


def test_the_adaptive_rate_goes_by_the_samples_of_the_last_epoch(monkeypatch):
    seen, steps = [], []
    monkeypatch.setattr(learning_rate, "kl_adaptive", lambda rate, kl, *_: seen.append(kl) or rate)
    updater, batch = make_updater(lr_schedule="kl_adaptive"), make_batch(0)
    batch.valid[:, :2] = False  # so that minibatches differ in their samples
    updater.train_iteration(batch, 0, EachStep(lambda: steps.append(dict(updater.metrics._last_step))))
    kls, counts = ([step[name].item() for step in steps[2:]] for name in ("approx_kl", "num_choices"))
    assert counts[0] != counts[1]
    assert seen == [pytest.approx(np.average(kls, weights=counts), rel=1e-5)]


@pytest.mark.parametrize("with_ppo_clip", [True, False])
def test_the_adaptive_rate_knows_the_age_of_the_data_from_the_size_of_an_update(with_ppo_clip):
    updater = make_updater(lr_schedule="kl_adaptive", learning_rate=1e-6, with_ppo_clip=with_ppo_clip)
    batch = make_batch(0)
    batch.log_prob.sub_(2.0)  # another policy acted
    updater.train_iteration(batch, 0)
    assert updater.learning_rate == pytest.approx(1.5e-6)
    assert updater.pop_metrics()["approx_kl"] < 1e-3


@pytest.mark.parametrize(
    ("final", "hold", "share_done", "highest"),
    [
        (None, 0.0, 0.75, 1e-6),
        (2e-6, 0.0, 0.5, 1.5e-6),
        (0.0, 0.5, 0.5, 1e-6),
        (0.0, 0.5, 0.75, 0.5e-6),
        (0.0, 0.5, 1.0, 1e-9),
    ],
)
def test_the_highest_adaptive_rate_may_fall_towards_the_end(final, hold, share_done, highest):
    updater = make_updater(
        lr_schedule="kl_adaptive",
        learning_rate=1e-6,
        lr_adaptive_max=1e-6,
        lr_adaptive_min=1e-9,
        lr_adaptive_max_final=final,
        lr_adaptive_max_hold=hold,
    )
    updater.train_iteration(make_batch(0), share_done)
    assert updater.learning_rate == pytest.approx(highest)


@pytest.mark.parametrize(
    ("advantage_share", "kl", "rate"),
    [
        (0.5, 0.0, 0.25),  # advantages of a quarter of the returns' deviation: a quarter of the highest rate
        (0.5, 0.0041, 0.2 / 1.5),  # twice a quarter of 0.008 is 0.004
        (0.5, 0.0039, 0.2),
        (0.25, 0.0041, 0.2),
        (0.25, 0.0039, 0.3),
        (0.0, 0.0039, 0.3),
    ],
)
def test_advantages_that_are_small_beside_the_returns_lower_the_highest_rate_and_the_kl_target(
    advantage_share, kl, rate
):
    updater = make_updater(
        lr_schedule="kl_adaptive", learning_rate=0.2, lr_adaptive_max=1.0, lr_adaptive_advantage_share=advantage_share
    )

    def measured(num_steps, name):
        assert num_steps == 2  # of the last epoch
        stddev = updater.model.value_norm.stddev.item()
        return {"approx_kl": kl, "advantage_stddev": stddev / 4}[name]

    updater.metrics.mean_of_last = measured
    updater.train_iteration(make_batch(0), 0)
    assert updater.learning_rate == pytest.approx(rate)


def test_without_statistics_of_returns_no_advantages_are_small():
    flags = {"normalize_returns": False, "lr_adaptive_advantage_share": 1.0}
    updater = make_updater(lr_schedule="kl_adaptive", learning_rate=1e-6, lr_adaptive_max=1.2e-6, **flags)
    batch = make_batch(0)
    batch.reward.mul_(1e-3)
    updater.train_iteration(batch, 0)
    assert updater.learning_rate == pytest.approx(1.2e-6)


class Stop(EachStep):
    """Says no from the question with the number `at` on, counted from 0."""

    def __init__(self, at, work=lambda: None):
        super().__init__(work)
        self.at = at
        self.num_asked = 0

    def goes_on(self):
        self.num_asked += 1
        return self.num_asked <= self.at


@pytest.mark.parametrize(("decoupled", "lr_schedule"), [(True, "kl_adaptive"), (False, "constant")])
def test_an_iteration_can_be_cut_before_each_piece_of_its_work(decoupled, lr_schedule):
    num_before = 2 if decoupled else 0  # pieces of the pass before the first step
    for at in range(num_before + 5):
        updater, versions = make_updater(decoupled_clip=decoupled, lr_schedule=lr_schedule), []
        stop = Stop(at, lambda v=versions, u=updater: v.append(u.version))
        steps = updater.train_iteration(make_batch(0), 0, stop)
        assert steps == min(4, max(0, at - num_before))
        assert versions == [2, 3, 4, 5][:steps]
        assert stop.num_asked == min(at + 1, num_before + 4)
        metrics = updater.pop_metrics()
        assert ("loss" in metrics) == (steps > 0)
        assert metrics["lag_max"] == 0
        if steps < 4:  # the last epoch says how far the policy has moved: here there is none
            assert updater.learning_rate == 0.01


def test_what_a_cut_iteration_has_trained_is_what_a_whole_one_had_by_then():
    whole, cut, after_steps = make_updater(), make_updater(), []
    rng = torch.get_rng_state()
    whole.train_iteration(make_batch(0), 0, EachStep(lambda: after_steps.append(numbers_of(whole.model))))
    torch.set_rng_state(rng)
    assert cut.train_iteration(make_batch(0), 0, Stop(at=2 + 3)) == 3
    assert torch.equal(numbers_of(cut.model), after_steps[2])
    cut.train_iteration(make_batch(1, cut.version), 0)  # and it can go on
    assert cut.version == 1 + 3 + 4


def test_samples_that_are_too_old_are_masked_and_counted():
    updater = make_updater(max_policy_lag=4)
    updater.version = 10
    batch = make_batch(0, version=6)
    batch.policy_version[:2] = 5  # 5 versions old
    lag = 10 - batch.policy_version[batch.valid].float()
    batch.policy_version[~batch.valid] = 99  # of another policy
    updater.train_iteration(batch, 0)
    metrics = updater.pop_metrics()
    trained = batch.valid.clone()
    trained[:2] = False
    assert metrics["masked_share"] == pytest.approx(1 - (trained.sum() / batch.valid.sum()).item())
    assert metrics["sample_reuse"] == pytest.approx(updater._config.num_epochs * (1 - metrics["masked_share"]))
    assert metrics["lag_max"] == 5
    assert metrics["lag_mean"] == pytest.approx(lag.mean().item())


def test_rows_that_are_not_valid_are_not_too_old():
    updater, batch = make_updater(max_policy_lag=4), make_batch(0)
    batch.valid[:, 1:] = False
    updater.train_iteration(batch, 0)
    batch.valid.zero_()
    updater.train_iteration(batch, 0)
    assert updater.pop_metrics()["masked_share"] == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rewards_are_scaled_before_they_are_clipped(sign):
    losses = []
    for scale, clip, rewards in ((2.0, 1.0, sign * 0.75), (1.0, 0.0, sign * 1.0)):
        updater = make_updater(reward_scale=scale, reward_clip=clip)
        batch = make_batch(0)
        batch.reward.fill_(rewards)
        updater.train_iteration(batch, 0)
        measured = updater.pop_metrics()
        losses.append(measured["value_loss"])
        assert measured.get("clipped_reward_share") == (1.0 if clip else None)
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("flags", "size"),
    [
        ({}, 2.0**20),
        ({"with_vtrace": False, "normalize_advantages_over": "iteration"}, 2.0**-20),
        ({"value_scale": "symlog"}, 2.0**-20),
    ],
    ids=str,
)
def test_rewards_of_any_size_train_the_same_policy(flags, size):
    """Powers of two change no digit, but for those of logarithms."""
    is_exact = "value_scale" not in flags
    policies = []
    for scale in (1.0, size):
        updater = make_updater(normalize_returns=is_exact, **flags)
        for seed in range(4):
            batch = make_batch(seed, updater.version)
            batch.reward.mul_(scale)
            batch.value.mul_(scale if seed else 0.0)  # a new network predicts 0
            updater.train_iteration(batch, 0)
        policies.append(dict(updater.model.named_parameters()))
    for name, weight in policies[0].items():
        tolerance = 0.0 if is_exact else 1e-4
        torch.testing.assert_close(policies[1][name], weight, rtol=0, atol=tolerance, msg=name)


@pytest.mark.parametrize(("stddev", "is_known"), [(0.005, False), (0.1, True)])
@pytest.mark.parametrize("normalize_returns", [True, False])
def test_explained_variance_is_unknown_where_returns_barely_vary_normalised_or_not(normalize_returns, stddev, is_known):
    updater = make_updater(gamma=0.0, with_vtrace=False, normalize_returns=normalize_returns)
    for seed in range(2):  # the first iteration finds how they are normalised
        batch = make_batch(seed, updater.version)
        batch.reward.normal_(1.0, stddev, generator=torch.Generator().manual_seed(seed))
        updater.train_iteration(batch, 0)
        measured = updater.pop_metrics()
    assert ("explained_variance" in measured) == is_known


@pytest.mark.parametrize(("lr_schedule", "expected"), [("linear", 0.075), ("cosine", 0.05 * (1 + 0.5**0.5))])
def test_a_schedule_to_the_end_follows_the_share_of_the_run_that_is_done(lr_schedule, expected):
    updater = make_updater(lr_schedule=lr_schedule, train_for_env_steps=1000, learning_rate=0.1)
    updater.train_iteration(make_batch(0), 0.25)
    assert updater.learning_rate == pytest.approx(expected)
    updater.set_hyperparameters({"learning_rate": 0.2})  # as a mutation of a population does
    updater.train_iteration(make_batch(1, updater.version), 0.25)
    assert updater.learning_rate == pytest.approx(2 * expected)


def weights_after(share_done, **flags):
    updater = make_updater(train_for_env_steps=1000, **flags)
    updater.train_iteration(make_batch(0), share_done)
    return numbers_of(updater.model), updater.pop_metrics().get("exploration_loss_coeff")


ON_A_LINE = {"exploration_loss_coeff": 0.4, "exploration_loss_coeff_final": 0.1}
CUBIC = {"exploration_loss_coeff": 0.1, "exploration_loss_coeff_extra": 0.3}


@pytest.mark.parametrize(
    ("flags", "share_done", "now"),
    [
        *((ON_A_LINE, *rest) for rest in ((0.25, 0.325), (1.0, 0.1))),
        *((CUBIC, *rest) for rest in ((0.0, 0.4), (0.5, 0.1375))),
    ],
)
def test_an_entropy_bonus_that_falls_has_the_weight_that_belongs_to_the_share_of_the_run(flags, share_done, now):
    annealed, said = weights_after(share_done, **flags)
    constant, said_of_constant = weights_after(share_done, exploration_loss_coeff=now)
    other, _ = weights_after(share_done, exploration_loss_coeff=2 * now)
    assert said == pytest.approx(now)
    assert said_of_constant is None
    torch.testing.assert_close(annealed, constant)
    assert not torch.allclose(annealed, other)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"train_for_env_steps": 1000}, 0.4),
        ({"train_for_seconds": 1000}, 0.4),
        ({}, None),  # a run without an end
        ({"train_for_env_steps": 1000, "exploration_loss_coeff": 0.0}, None),
        ({"train_for_env_steps": 1000, "exploration_loss_coeff_final": 0.0}, 0.1),
    ],
)
def test_who_wants_no_entropy_bonus_or_one_on_a_line_has_no_extra_one(flags, said):
    updater = make_updater(**{"exploration_loss_coeff": 0.1, "exploration_loss_coeff_extra": 0.3, **flags})
    updater.train_iteration(make_batch(0), 0.0)
    assert updater.pop_metrics().get("exploration_loss_coeff") == said


def test_a_mutation_changes_where_the_line_of_an_annealed_entropy_bonus_begins():
    updater = make_updater(exploration_loss_coeff=0.4, exploration_loss_coeff_final=0.1, train_for_env_steps=1000)
    updater.set_hyperparameters({"exploration_loss_coeff": 0.8})
    updater.train_iteration(make_batch(0), 0.5)
    assert updater.pop_metrics()["exploration_loss_coeff"] == pytest.approx(0.45)


def metrics_of_the_first_step(updater, batch):
    found = []
    updater.train_iteration(batch, 0, EachStep(lambda: found.append(updater.pop_metrics()) if not found else None))
    return found[0]


@pytest.mark.parametrize("lag", [0, 50])
def test_a_decoupled_iteration_begins_at_its_proximal_policy_whatever_the_lag(lag):
    coupled, decoupled = (make_updater(decoupled_clip=flag, lr_schedule="constant") for flag in (False, True))
    for updater in (coupled, decoupled):
        updater.version = 1 + lag
    batch = make_batch(0)
    batch.log_prob.uniform_(-4.0, -0.1)  # of a behaviour policy that is far from the present one
    found = metrics_of_the_first_step(decoupled, batch)
    assert found["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert found["clip_fraction"] == 0
    assert metrics_of_the_first_step(coupled, batch)["clip_fraction"] > 0.5


@pytest.mark.parametrize(
    ("flag", "values"), [("decoupled_clip", (False, True)), ("normalize_advantages_over", ("minibatch", "iteration"))]
)
def test_in_an_iteration_of_one_step_there_is_nothing_to_decouple_and_one_set_of_moments(flag, values):
    results = []
    for value in values:
        updater = make_updater(**{flag: value}, num_epochs=1, num_batches_per_epoch=1, batch_size=T * B)
        for seed in range(2):
            assert updater.train_iteration(make_batch(seed, updater.version), 0) == 1
        results.append(updater.tensors())
    assert same(*results)


def test_advantages_may_be_normalised_by_the_moments_of_all_samples_before_the_first_step(monkeypatch):
    """Without those that are too old. See `test_slow_iteration` for the other ways to train."""
    seen = []

    def spying_loss(*args, **kwargs):
        seen.append(kwargs["advantage_moments"])
        return ppo_loss(*args, **kwargs)

    monkeypatch.setattr(minibatch_loss, "ppo_loss", spying_loss)
    flags = {"normalize_advantages_over": "iteration", "normalize_input": False, "decoupled_clip": False}
    updater, batch = make_updater(max_policy_lag=4, **flags), make_batch(0, version=1)
    updater.version = 5
    batch.policy_version[0] = 0  # too old
    batch.reward[0, 0] = 1e6
    trained = batch.valid.clone()
    trained[0] = False
    log_prob, value, _ = updater._evaluate_before(batch, NO_CALLBACK)
    advantages = make_targets(updater._config, batch, log_prob, value).advantage
    kept = [advantages[t, b].item() for t in range(T) for b in range(B) if trained[t, b]]
    updater.train_iteration(batch, 0)
    assert len(seen) == 4
    for found in seen:
        assert found.mean.item() == pytest.approx(np.mean(kept), rel=1e-4)
        assert found.stddev.item() == pytest.approx(np.std(kept), rel=1e-4)


def test_samples_without_a_choice_do_not_count_in_the_moments_of_an_iteration():
    space = gym.spaces.Dict(
        {"vector": gym.spaces.Box(-1, 1, (5,), np.float32), "action_mask": gym.spaces.Box(0, 1, (3,), np.int8)}
    )
    config = CONFIG.replace(
        core="none", shuffle_steps=True, normalize_advantages_over="iteration", decoupled_clip=False
    )
    torch.manual_seed(0)
    updater = Updater(config, space, ActionSpec((3,), 0), bfloat16=False, device=torch.device("cpu"))
    batch = make_batch(0)
    mask = torch.ones(T + 1, B, 3, dtype=torch.int8)
    forced = torch.rand(T, B) < 0.5
    mask[:-1][forced] = torch.tensor([1, 0, 0], dtype=torch.int8)
    discrete = torch.where(forced[..., None], 0, batch.discrete[..., :1])
    obs = {"vector": batch.obs["vector"], "action_mask": mask}
    nothing = batch.continuous[..., :0]
    batch = batch.replaced(obs=obs, discrete=discrete, continuous=nothing, state=torch.zeros(B, 0))
    before = updater._evaluate_before(batch, NO_CALLBACK)
    assert torch.equal(before.has_choice, ~forced)
    whole = updater._prepare(batch, batch.valid, NO_CALLBACK)
    kept = whole.targets.advantage[batch.valid & ~forced]
    assert whole.advantage_moments.mean.item() == pytest.approx(kept.mean().item(), rel=1e-5)
    assert whole.advantage_moments.stddev.item() == pytest.approx(kept.std(correction=0).item(), rel=1e-5)


@pytest.mark.parametrize(("shuffle_steps", "with_vtrace"), [(True, True), (False, False)])
def test_what_an_agent_sees_while_it_waits_changes_nothing(shuffle_steps, with_vtrace):
    space = gym.spaces.Dict(
        {"vector": gym.spaces.Box(-1, 1, (5,), np.float32), "action_mask": gym.spaces.Box(0, 1, (3,), np.int8)}
    )
    config = CONFIG.replace(
        core="none", shuffle_steps=shuffle_steps, with_vtrace=with_vtrace, decoupled_clip=False, normalize_input=False
    )
    batch = make_batch(0)
    acts = torch.rand(T + 1, B) < 0.5
    mask = acts[..., None].expand(-1, -1, 3).to(torch.int8)
    discrete, nothing = batch.discrete[..., :1] * acts[:-1, :, None], batch.continuous[..., :0]
    log_prob = torch.where(acts[:-1], batch.log_prob, 0.0)
    weights = []
    for seen in (1.0, -1.0):
        vector = torch.where(acts[..., None], batch.obs["vector"], seen)
        changed = batch.replaced(
            obs={"vector": vector, "action_mask": mask},
            discrete=discrete,
            continuous=nothing,
            log_prob=log_prob,
            value=torch.where(acts[:-1], batch.value, seen),
            state=torch.zeros(B, 0),
        )
        torch.manual_seed(0)
        updater = Updater(config, space, ActionSpec((3,), 0), bfloat16=False, device=torch.device("cpu"))
        before = numbers_of(updater.model)
        updater.train_iteration(changed, 0)
        weights.append(numbers_of(updater.model))
        assert not torch.equal(weights[-1], before)
        num_decisions = has_outcome(acts, batch.terminated, batch.valid)[batch.valid].sum().item()
        num_minibatches = config.learner.num_batches_per_epoch
        assert updater.pop_metrics()["num_samples"] == pytest.approx(num_decisions / num_minibatches)
    torch.testing.assert_close(*weights)


def test_a_critic_in_logarithms_is_trained_towards_those_of_its_targets():
    flags = {"num_batches_per_epoch": 1, "num_epochs": 1, "batch_size": T * B, "ppo_clip_value": 0.0}
    flags |= {"normalize_input": False, "normalize_returns": False, "value_scale": "symlog"}
    updater, batch = make_updater(**flags), make_batch(0)
    batch.reward.mul_(1000.0)
    log_prob, value, _ = updater._evaluate_before(batch, NO_CALLBACK)
    target = make_targets(updater._config, batch, log_prob, value).value
    assert target.max() > 100.0
    updater.model.update_value_norm(target, batch.valid)
    size = np.exp(np.mean(np.log(np.abs(target[batch.valid].double().numpy()))))
    log_prob, value, _ = updater._evaluate_before(batch, NO_CALLBACK)
    target = make_targets(updater._config, batch, log_prob, value).value

    def symlog(x):
        return np.sign(x) * np.log(np.abs(x) / size + 1.0)

    errors = [
        (symlog(value[t, b].item()) - symlog(target[t, b].item())) ** 2
        for t in range(T)
        for b in range(B)
        if batch.valid[t, b]
    ]
    updater.train_iteration(batch, 0)
    assert updater.pop_metrics()["value_loss"] == pytest.approx(np.mean(errors), rel=1e-4)


def test_trajectories_are_drawn_by_their_advantages_before_the_first_step(monkeypatch):
    seen = []

    def spying_loss(*args, **kwargs):
        seen.append((args[2], kwargs["sample_weight"]))
        return ppo_loss(*args, **kwargs)

    monkeypatch.setattr(minibatch_loss, "ppo_loss", spying_loss)
    updater = make_updater(trajectory_priority=0.6, trajectory_priority_beta=0.4, max_policy_lag=4)
    updater.version, batch = 5, make_batch(0, version=1)
    batch.policy_version[:, 2] = 0  # all of it is too old
    log_prob, value, _ = updater._evaluate_before(batch, NO_CALLBACK)
    mask = batch.valid.clone()
    mask[:, 2] = False
    whole = updater._prepare(batch, mask, NO_CALLBACK)
    targets = make_targets(updater._config, batch, log_prob, value)
    expected = priorities(targets.advantage, mask, alpha=0.6, beta=0.4)
    assert all(torch.equal(a, b) for a, b in zip(whole.priorities, expected, strict=True))
    for seed in range(5):
        torch.manual_seed(seed)
        updater.train_iteration(batch, 0)
        updater.version = 5
    columns = {tuple(column.tolist()): b for b, column in enumerate(batch.log_prob.T)}
    drawn = [columns[tuple(column.tolist())] for log_probs, _ in seen for column in log_probs.T]
    assert len(drawn) == 5 * 2 * B
    assert 2 not in drawn
    assert len(set(drawn[:B])) < B  # again and again, in one epoch
    assert all(weight.shape == (T, B // 2) and (weight == weight[0]).all() for _, weight in seen)
    assert len({weight[0, 0].item() for _, weight in seen}) > 1
