"""Intrinsic rewards: what counts as new, and what becomes of it in the advantages of the policy."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from ranks_in_threads import each_rank
from small_batches import CASES, FIRST, FLAGS, MIXED, PICTURES, VECTOR, make_batch

from sf.config import Config, ModelConfig
from sf.envs.errors import UsageError
from sf.learner.intrinsic.choice import make_intrinsic_reward
from sf.learner.intrinsic.counts import Counts
from sf.learner.intrinsic.curiosity import Curiosity
from sf.learner.intrinsic.reward import IntrinsicReward
from sf.learner.intrinsic.rnd import RandomNetworkDistillation
from sf.learner.loss.targets import make_targets
from sf.learner.update import Updater

CONFIG = Config().replace(**FLAGS | {"intrinsic": "rnd"})


def test_an_error_of_prediction_falls_for_what_was_seen_and_not_for_what_was_not():
    torch.manual_seed(0)
    reward = RandomNetworkDistillation(VECTOR, ModelConfig())
    optimizer = torch.optim.Adam([weight for weight in reward.parameters() if weight.requires_grad], 1e-3)
    seen, other = {"obs": torch.randn(64, 5) + 2}, {"obs": torch.randn(64, 5) - 2}
    before = reward.bonus(seen).mean() / reward.bonus(other).mean()
    for _ in range(200):
        optimizer.zero_grad()
        reward.learn(seen).backward()
        optimizer.step()
    assert reward.bonus(seen).mean() / reward.bonus(other).mean() < 0.2 * before


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_counts_are_of_whole_observations(dtype):
    space = gym.spaces.Dict(a=gym.spaces.Box(0, 9, (3, 2), dtype), b=gym.spaces.Box(0, 9, (1,), np.int32))
    counts = Counts(space, ModelConfig())
    rng = np.random.default_rng(1)
    obs = {
        key: torch.from_numpy(rng.integers(10, size=(50, *box.shape)).astype(box.dtype)) for key, box in space.items()
    }
    times = torch.arange(50) % 4
    for nth in range(4):
        counts.learn({key: rows[times >= nth] for key, rows in obs.items()})
    assert counts.bonus(obs).tolist() == pytest.approx((1 + times).float().rsqrt().tolist())
    changed = {**obs, "b": 9 - obs["b"]}
    assert counts.bonus(changed).tolist() == [1.0] * 50


class Given(IntrinsicReward):
    """Pays the first number of an observation, in some unit."""

    def __init__(self, obs_space, config, unit=1.0):
        super().__init__()
        self.unit = unit

    def bonus(self, obs):
        return self.unit * obs["obs"][:, 0]

    def learn(self, obs):
        return None


def curiosity(unit=1.0, **flags):
    torch.manual_seed(0)
    found = Curiosity(CONFIG.replace(**flags), VECTOR)
    found.reward.unit = unit
    return found


@pytest.fixture
def given(monkeypatch):
    monkeypatch.setattr("sf.learner.intrinsic.curiosity.make_intrinsic_reward", Given)


def test_advantages_know_no_unit_and_go_on_beyond_the_end_of_an_episode_and_not_beyond_a_cut(given):
    batch = make_batch(VECTOR, MIXED, 0)
    batch = batch.replaced(valid=torch.ones_like(batch.valid), terminated=torch.zeros_like(batch.terminated))
    of_units = []
    for unit in (1.0, 1000.0):
        own = curiosity(unit)
        assert not own.added_to(batch).intrinsic_advantage.any()  # the scale is not known yet
        torch.manual_seed(1)
        own.learn(batch)
        of_units.append(own.added_to(batch).intrinsic_advantage)
    torch.testing.assert_close(*of_units, rtol=1e-4, atol=1e-4)
    (expected, _), own = of_units, curiosity()
    own.added_to(batch)
    torch.manual_seed(1)
    own.learn(batch)

    def advantages(**changed):
        return own.added_to(batch.replaced(**changed)).intrinsic_advantage

    assert torch.equal(advantages(terminated=torch.ones_like(batch.terminated)), expected)
    valid = torch.ones_like(batch.valid)
    valid[2] = False
    cut = advantages(valid=valid)
    assert not cut[2].any()
    assert not torch.equal(cut[1], expected[1])
    torch.testing.assert_close(cut[3], expected[3], rtol=0.05, atol=0.05)  # statistics have moved


def test_the_policy_learns_from_the_sum_of_both_advantages():
    batch = make_batch(VECTOR, MIXED, 0)
    value = torch.zeros(batch.reward.shape[0] + 1, batch.reward.shape[1])
    config = CONFIG.replace(intrinsic_coeff=0.25).learner
    own = torch.randn(batch.reward.shape)
    without = make_targets(config, batch, batch.log_prob, value)
    both = make_targets(config, batch.replaced(intrinsic_advantage=own), batch.log_prob, value)
    torch.testing.assert_close(both.advantage, without.advantage + 0.25 * own)
    assert torch.equal(both.value, without.value)


@pytest.mark.parametrize("case", [FIRST, PICTURES])
def test_a_learner_goes_on_from_a_checkpoint_to_the_bit(case):
    space, spec, flags = CASES[case]
    config = Config().replace(**FLAGS | flags | {"intrinsic": "rnd"})

    def updater():
        torch.manual_seed(0)
        return Updater(config, space, spec, False, torch.device("cpu"))

    one, other = updater(), updater()
    for seed in range(2):
        one.train_iteration(make_batch(space, spec, seed), 0.0)
    saved, state = {name: tensor.clone() for name, tensor in one.tensors().items()}, one.state()
    one.train_iteration(make_batch(space, spec, 2), 0.0)
    other.load(saved, state)
    other.train_iteration(make_batch(space, spec, 2), 0.0)
    tensors = one.tensors()
    assert sum(name.startswith("intrinsic/") for name in tensors) > 20
    assert [name for name, tensor in other.tensors().items() if not torch.equal(tensor, tensors[name])] == []
    metrics = one.pop_metrics()
    assert metrics["intrinsic/bonus"] > 0
    assert 0 < metrics["intrinsic/left_share"] < 1
    without = Updater(config.replace(intrinsic="none"), space, spec, False, torch.device("cpu"))
    without.load(tensors, one.state())
    assert not any(name.startswith("intrinsic/") for name in without.tensors())


def test_ranks_have_the_same_networks():
    def body(ranks):
        own = Curiosity(CONFIG, VECTOR, ranks=ranks)
        for seed in range(2):
            batch = make_batch(VECTOR, MIXED, 10 * ranks.rank + seed)
            own.added_to(batch)
            own.learn(batch)
        return own.state_dict()

    one, other = each_rank(2, body)
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], msg=name)


@pytest.mark.parametrize(
    ("name", "said"), [("rdn", "rnd"), ("math:sqrt", "Python itself"), ("torch.nn:Identity", "IntrinsicReward")]
)
def test_a_name_that_is_none_is_said(name, said):
    with pytest.raises(UsageError, match=said):
        make_intrinsic_reward(name, VECTOR, ModelConfig())
