"""Batches from the buffer: each step is a position of its own, whose value learns its target alone."""

import numpy as np
import pytest
import torch
from made_games import SPEC, Actor, T, slots

from sf.config import LearnerConfig
from sf.learner.batches.batch import Batch
from sf.learner.games.buffer import GameBuffer
from sf.learner.games.joining import GameJoiner
from sf.learner.games.supply import GameSupply, SupplyRules
from sf.learner.loss.masks import has_outcome
from sf.learner.loss.targets import make_targets
from sf.shared.kept_games import allocate_games


class Slots:
    def env_steps(self, slots):
        return 2 * len(slots)


def made(rows, min_games=1, samples_per_position=100.0, num_epochs=1):
    join = GameJoiner(rows, gamma=1.0, lambda_=1.0, reward_scale=1.0)
    games = GameBuffer(allocate_games(SPEC, 100, 2**20), samples_per_position)
    return GameSupply(Slots(), join, games, SupplyRules(min_games, 2, num_epochs, (0,)), version=lambda: 7)


def filled_with(supply, rows, num_slots, actor=1):
    actor = Actor(actor, lambda game: 3)
    for _ in range(num_slots):
        actor.fill(rows, 0)
        supply.add([0])


@pytest.mark.parametrize("lambda_", [0.0, 0.95])
def test_the_value_targets_are_those_of_the_games(lambda_):
    rows = slots(1)
    supply, batch = made(rows), Batch.empty(rows, 8, 0, "cpu")
    filled_with(supply, rows, 12)
    supply.fill(batch)
    config = LearnerConfig(gamma=0.5, gae_lambda=lambda_, with_vtrace=False)
    targets = make_targets(config, batch, batch.log_prob, torch.randn(T + 1, 8))
    game = batch.obs["obs"][:-1, :, 0]
    expected = torch.where(game % 2 == 1, 1.0, -1.0)
    assert targets.value.shape == (T, 8)
    torch.testing.assert_close(targets.value, expected)
    assert {1.0, -1.0} == {*expected.flatten().tolist()}
    acts = batch.acts()
    assert has_outcome(acts, batch.terminated, batch.valid).all()
    assert (batch.policy_version == 7).all()
    assert np.array_equal(batch.discrete[..., 0], batch.obs["obs"][:-1, :, 1] % 3)


def test_nothing_is_trained_on_before_there_are_games_enough():
    rows = slots(1)
    supply, batch = made(rows, min_games=3), Batch.empty(rows, 1, 0, "cpu")
    filled_with(supply, rows, 4)  # 16 rows: five games, as one of two agents sees them
    assert not supply.can_fill(batch)
    filled_with(supply, rows, 2, actor=2)
    assert supply.can_fill(batch)


def test_no_more_samples_are_taken_than_positions_are_worth():
    rows = slots(1)
    supply, batch = made(rows, samples_per_position=1.0, num_epochs=2), Batch.empty(rows, 1, 0, "cpu")
    filled_with(supply, rows, 6)  # 24 rows: eight games with two decisions each
    supply.fill(batch)
    supply.fill(batch)
    assert not supply.can_fill(batch)
    assert supply.metrics() == {"search/games": 4, "search/positions": 16, "search/samples_per_position": 1.0}
    assert supply.pop_env_steps() == 12
    assert not supply.has_news
