import numpy as np
import pytest

from sf.league.record import Match, scores_of
from sf.league.standings import payoffs


def two(first, second, score, other_score):
    return Match((first, second), (score, other_score))


def test_the_table_counts_wins_and_scores_of_each_pair():
    matches = [two("a", "b", 3, 1), two("b", "a", 2, 2), two("a", "b", 0, 4), two("a", "c", 1, -1)]
    table = payoffs(["a", "b", "c"], matches)
    assert table.num_matches.tolist() == [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    assert table.win_rate[0, 1] == pytest.approx((1 + 0.5 + 0) / 3)
    assert table.win_rate[1, 0] == pytest.approx(1 - table.win_rate[0, 1])
    assert table.mean_score[0, 1] == pytest.approx(5 / 3)
    assert table.mean_score[1, 0] == pytest.approx(7 / 3)
    assert table.margin[0, 1] == pytest.approx((1 + 0 - 2) / 3)
    assert np.isnan(table.win_rate[1, 2])
    assert np.isnan(np.diag(table.win_rate)).all()
    assert not table.is_complete
    with pytest.raises(ValueError, match="not every player met every other one"):
        table.zero_sum()


def test_agents_of_one_player_are_a_team_that_scores_their_mean():
    match = Match(("a", "b", "a", "b"), (1.0, 5.0, 3.0, 0.0))
    assert scores_of(match) == {"a": 2.0, "b": 2.5}
    table = payoffs(["a", "b"], [match])
    assert table.num_matches.tolist() == [[0, 1], [1, 0]]
    assert table.win_rate[1, 0] == 1.0
    assert table.margin[1, 0] == 0.25


def test_three_in_a_match_are_compared_two_by_two():
    table = payoffs(["a", "b", "c"], [Match(("a", "b", "c"), (3, 2, 2))])
    assert table.zero_sum().tolist() == [[0, 1, 1], [-1, 0, 0], [-1, 0, 0]]


def test_others_and_matches_against_oneself_do_not_count():
    table = payoffs(["a", "b"], [two("a", "z", 1, 0), Match(("a", "a"), (1, -1)), two("a", "b", 1, 0)])
    assert table.num_matches.tolist() == [[0, 1], [1, 0]]
