"""Prioritised level replay: the scores of levels, and how probable each is by them."""

import numpy as np
import pytest
import torch
from ranks_in_threads import each_rank
from small_batches import MIXED, VECTOR, T, make_batch

from sf.config import LearnerConfig
from sf.learner.levels import LevelScores

FIRST, LEVELS = 10, 4
CONFIG = LearnerConfig(gamma=0.0)  # so that an advantage is a reward less a value


def batch_of(*trajectories, seed=0):
    """trajectories: the level of each, with its rewards less its values in all steps but the last."""
    batch = make_batch(VECTOR, MIXED, seed, size=(T, len(trajectories)))
    level = torch.tensor([[level for level, _ in trajectories]] * T, dtype=torch.int32)
    above = torch.tensor([[*each, 100.0] for _, each in trajectories]).T
    first = torch.zeros_like(batch.first)
    first[0] = True
    changed = {"level": level, "reward": batch.value + above, "valid": torch.ones_like(batch.valid), "first": first}
    return batch.replaced(**changed)


def scores_of(*batches, **flags):
    scores = LevelScores(FIRST, LEVELS, **{"temperature": 0.5, "staleness": 0.0, **flags})
    for batch in batches:
        scores.look(CONFIG, batch)
    return scores


def test_a_score_is_the_mean_absolute_advantage_and_follows_later_ones_by_their_number():
    first = batch_of((10, [1.0, -3.0, 2.0]), (12, [4.0, 4.0, 4.0]))
    known = scores_of(first).state()
    assert known["scores"] == pytest.approx([2.0, None, 4.0, None])
    assert known["num_episodes"] == 2
    later = batch_of((10, [5.0, 5.0, 5.0]))
    invalid = later.replaced(valid=torch.tensor([[True], [False], [False], [True]]))
    (score, *_) = scores_of(first, later).state()["scores"]
    assert score == pytest.approx(2.0 + (5.0 - 2.0) * 3 / (3 + T))
    (score, *_) = scores_of(first, invalid).state()["scores"]
    assert score == pytest.approx(2.0 + (5.0 - 2.0) * 1 / (1 + T))


def test_levels_are_drawn_by_rank_and_staleness_and_unknown_ones_by_their_share():
    assert scores_of().probabilities() == pytest.approx([0.25] * LEVELS)
    batches = batch_of((10, [1.0] * 3)), batch_of((11, [3.0] * 3)), batch_of((12, [2.0] * 3))
    by_rank = np.array([1 / 9, 1.0, 1 / 4, 0.0]) / (1 + 1 / 4 + 1 / 9)
    expected = 0.75 * by_rank + [0, 0, 0, 0.25]
    assert scores_of(*batches).probabilities() == pytest.approx(expected)
    by_age = np.array([2.0, 1.0, 0.0, 0.0]) / 3  # episodes that have begun since
    expected = 0.75 * (0.9 * by_rank + 0.1 * by_age) + [0, 0, 0, 0.25]
    scores = scores_of(*batches, staleness=0.1)
    assert scores.probabilities() == pytest.approx(expected)
    metrics = scores.metrics()
    assert metrics["levels/seen_share"] == 0.75
    assert 1 < metrics["levels/effective"] < LEVELS


def test_a_checkpoint_goes_on_also_with_other_levels():
    batches = batch_of((10, [1.0] * 3)), batch_of((11, [3.0] * 3), (13, [2.0] * 3))
    state = scores_of(*batches).state()
    same = scores_of()
    same.load(state)
    assert same.state() == state
    other = LevelScores(FIRST + 1, 2, 0.5, 0.1)
    other.load(state)
    assert other.state()["scores"] == [3.0, None]
    assert other.state()["seen_at"] == [3, 0]


def test_ranks_score_by_the_data_of_all():
    one, other = batch_of((10, [1.0] * 3), (11, [5.0] * 3)), batch_of((10, [2.0] * 3), (12, [1.0] * 3))

    def body(ranks):
        scores = LevelScores(FIRST, LEVELS, 0.5, 0.1)
        scores.look(CONFIG, other if ranks.rank else one, ranks)
        return scores.state()

    of_ranks = each_rank(2, body)
    assert of_ranks[0] == of_ranks[1]
    assert of_ranks[0]["scores"] == pytest.approx([1.5, 5.0, 1.0, None])
    assert of_ranks[0]["num_episodes"] == 4
