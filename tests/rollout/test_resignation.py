"""Who resigns would have lost, in all but one of twenty games that were played on."""

import numpy as np
import pytest

from sf.rollout.resignation import Resignations, highest_threshold


@pytest.mark.parametrize("seed", range(4))
def test_the_threshold_is_the_highest_with_few_mistakes(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.uniform(-1, 1, 300), 2)  # some are equal
    seen = [(float(value), bool(rng.random() < (1 + value) / 2)) for value in values]
    allowed = []
    for threshold in {value for value, _ in seen if value < 0}:
        wrong = [is_wrong for value, is_wrong in seen if value <= threshold]
        if len(wrong) >= 20 and sum(wrong) <= 0.05 * len(wrong):
            allowed.append(threshold)
    assert highest_threshold(seen) == max(allowed, default=None)


def test_nobody_resigns_before_enough_is_known():
    assert highest_threshold([(-0.9, False)] * 19) is None
    assert highest_threshold([(-0.9, False)] * 20) == -0.9
    assert highest_threshold([(-0.9, True)] * 20) is None
    assert highest_threshold([(0.9, False)] * 20) is None


def test_games_are_played_on_at_first_and_one_in_ten_later():
    resignations = Resignations(1, np.random.default_rng(0))
    ended, would, wrong = [], 0, 0
    for _ in range(500):
        has_resigned = resignations.resigns(0, 0, -0.8) or resignations.resigns(0, 1, 0.8)
        ended.append(has_resigned)
        found = resignations.game_over(0, np.array([-1.0, 1.0]))
        would, wrong = would + found[0], wrong + found[1]
    assert resignations.threshold == -0.8
    assert not any(ended[:20])
    assert 0.85 < np.mean(ended[20:]) < 0.95
    assert would > 20
    assert wrong == 0


def test_games_without_an_outcome_say_nothing():
    resignations = Resignations(1, np.random.default_rng(0))
    for _ in range(100):
        resignations.resigns(0, 0, -0.5)
        assert resignations.game_over(0, None) == (0, 0)
    assert resignations.threshold is None


def test_the_threshold_falls_where_those_who_would_resign_win():
    resignations = Resignations(1, np.random.default_rng(0))
    for _ in range(30):
        resignations.resigns(0, 0, -0.5)
        resignations.game_over(0, np.array([-1.0, 1.0]))
    assert resignations.threshold == -0.5
    for _ in range(2000):
        resignations.resigns(0, 0, -0.5)
        resignations.game_over(0, np.array([1.0, -1.0]))
    assert resignations.threshold is None
