"""Ratings are tried on players whose true strength is known."""

import itertools
import math

import numpy as np
import pytest

from sf.league import ratings as module
from sf.league.openskill_ratings import OpenskillRatings, openskill_ratings
from sf.league.ratings import Comparisons, fit, ratings
from sf.league.record import ExploiterReset, ExploiterRestarted, Match, Player, Reference


def chance(difference):
    return 1 / (1 + 10 ** (-difference / 400))


def tournament(rng, true, num_matches, draws=0.0):
    """Rows of players p0, p1, ... that meet each other. A draw is as likely in every match."""
    rows = [Player(f"p{p}") for p in range(len(true))]
    for i, j in itertools.combinations(range(len(true)), 2):
        for _ in range(num_matches):
            is_won, is_drawn = rng.random() < chance(true[i] - true[j]), rng.random() < draws
            rows.append(Match((f"p{i}", f"p{j}"), (0.0, 0.0) if is_drawn else (1.0, -1.0) if is_won else (-1.0, 1.0)))
    return rows


def slow_log_posterior(values, matches, prior_std):
    total = sum(-0.5 * (value / prior_std) ** 2 for value in values.values())
    for match in matches:
        (first, second), (score, other) = match.players, match.scores
        won = 1.0 if score > other else 0.5 if score == other else 0.0
        p = chance(values[first] - values[second])
        total += won * math.log(p) + (1 - won) * math.log(1 - p)
    return total


def test_two_players_are_as_far_apart_as_their_results_say():
    rows = [Player("a"), Player("b"), *[Match(("a", "b"), (0, 1))] * 1000, *[Match(("a", "b"), (1, 0))] * 100]
    found = ratings(rows).players
    assert found["a"] == (0, 0, 0, 0)
    assert found["b"].mean == pytest.approx(400, abs=2)
    assert found["b"].std == pytest.approx(173.7 / math.sqrt(1100 * (10 / 11) * (1 / 11)), rel=0.02)
    assert found["b"].low < 400 < found["b"].high


def test_no_other_ratings_are_more_probable():
    rng = np.random.default_rng(0)
    rows = tournament(rng, [0, 100, -150, 400], 12, draws=0.2)
    matches = [row for row in rows if isinstance(row, Match)]
    best = {name: rating.mean for name, rating in ratings(rows).players.items()}
    most = slow_log_posterior(best, matches, module.PRIOR_STD)
    for name in ("p1", "p2", "p3"):
        for step in (-2.0, 2.0):
            other = {**best, name: best[name] + step}
            assert slow_log_posterior(other, matches, module.PRIOR_STD) < most


def test_the_interval_holds_the_true_rating_as_often_as_it_says():
    rng = np.random.default_rng(2)
    hits = []
    for _ in range(60):
        true = [0, *rng.normal(0, 300, 4)]
        found = ratings(tournament(rng, true, 40)).players
        hits += [found[f"p{p}"].low <= true[p] <= found[f"p{p}"].high for p in range(1, 5)]
    assert 0.91 <= np.mean(hits) <= 0.985


@pytest.mark.parametrize("num", [3, 4])
def test_a_match_of_several_counts_as_one_result_less_than_it_has_players(num):
    """Each pair is compared in every match, by 2 / num of a result."""
    names = "abcd"[:num]
    orders = [(*names[i:], *names[:i]) for i in range(num)]
    matches = [Match(order, tuple(map(float, range(num)))[::-1]) for order in 30 * orders + 60 * orders[:1]]
    pairs = []
    for i, j in itertools.combinations(range(num), 2):
        num_won, num_results = 60 * (num - (j - i)) // num + 120 // num, 60 + 120 // num
        pairs += [Match((names[i], names[j]), (1.0, 0.0))] * num_won
        pairs += [Match((names[i], names[j]), (0.0, 1.0))] * (num_results - num_won)
    players = [Player(name) for name in names]
    found, expected = (ratings([*players, *rows]).players for rows in (matches, pairs))
    assert found["a"].mean > found[names[-1]].mean + 50
    for name in names:
        assert found[name] == pytest.approx(expected[name], abs=1e-6)


KNOTS = np.arange(0, 11) * 100_000


def learning(rng, num_matches, with_random=True):
    """A policy that learns against its snapshots and random moves; its rating at each snapshot, and the rows."""
    true = 1000 * (1 - np.exp(-3 * KNOTS / KNOTS[-1])) + np.cumsum([0, *rng.normal(0, 20, 10)])
    rows = [Player("random")] if with_random else []
    joined = 0
    for t in np.sort(rng.integers(0, KNOTS[-1], num_matches)).tolist():
        while KNOTS[joined] <= t:
            rows.append(Player(f"policy_00_{KNOTS[joined]:012d}", 0, int(KNOTS[joined]), "x"))
            joined += 1
        now, opponent = np.interp(t, KNOTS, true), rng.integers(joined)
        is_random = with_random and rng.random() < 0.1
        won = float(rng.random() < chance(now - (0 if is_random else true[opponent])))
        name = "random" if is_random else f"policy_00_{KNOTS[opponent]:012d}"
        rows.append(Match(("policy_00", name), (won, 1 - won), t))
    return true, rows


def test_a_policy_that_learns_has_a_curve_on_which_its_snapshots_lie():
    rng = np.random.default_rng(4)
    hits = []
    for _ in range(8):
        true, rows = learning(rng, 600)
        found = ratings(rows)
        curve = found.curves["policy_00"]
        at = {point.env_steps: point.rating for point in curve}
        assert found.held == {"random": 0.0}
        assert found.players["policy_00"] == curve[-1].rating
        for k, t in enumerate(KNOTS[:-1].tolist()):
            rating = found.players[f"policy_00_{t:012d}"]
            assert rating == at[t]
            hits.append(rating.low <= true[k] <= rating.high)
    assert 0.88 <= np.mean(hits) <= 1.0


def test_an_exploiter_that_begins_anew_leaves_its_snapshot_as_strong_as_it_was():
    """From 450 back to 0 and up again, twice. Its target's clock is another one."""
    rng = np.random.default_rng(1)
    rows = [Player("random")]
    for begins in (0, 10_000):
        for step in range(0, 10_000, 20):
            strength = 450 * step / 10_000
            won = float(rng.random() < chance(strength))
            clocks = {"policy_01": begins + step}
            rows.append(Match(("policy_01", "random"), (won, 1 - won), 5 * (begins + step), clocks=clocks))
        rows += [Player(f"policy_01_{begins + 9_990:012d}", 1, begins + 9_990, "x"), ExploiterReset(1, begins + 9_990)]
    found = ratings(rows)
    curve = {point.env_steps: point.rating.mean for point in found.curves["policy_01"]}
    assert max(curve) == 19_990  # by its own clock
    for snapshot in ("policy_01_000000009990", "policy_01_000000019990"):
        assert 250 < found.players[snapshot].mean < 650
    assert -120 < curve[9_991] < 120


def test_a_policy_that_begins_anew_is_rated_by_what_it_has_played_since():
    """As another policy that was met by the same: that it won before says nothing of it."""
    won, lost = (1.0, 0.0), (0.0, 1.0)
    before = [Match(("policy_00", "random"), won, t) for t in (0, 10, 20, 30)]
    after = [lost, won, lost]
    rows = [
        Player("random"),
        *before,
        ExploiterReset(0, 30),
        *[Match(("policy_00", "random"), scores, 31) for scores in after],
    ]
    others = [Player("random"), *[Match(("policy_01", "random"), scores, 31) for scores in after]]
    expected = ratings(others).players["policy_01"]
    assert ratings(rows).players["policy_00"] == pytest.approx(expected, abs=1e-3)


def test_without_random_moves_the_first_snapshot_is_held_at_0():
    true, rows = learning(np.random.default_rng(5), 600, with_random=False)
    found = ratings(rows)
    assert found.held == {"policy_00_000000000000": 0.0}
    assert found.players["policy_00_000000000000"] == (0, 0, 0, 0)
    assert found.players["policy_00"].mean == pytest.approx(true[-1] - true[0], abs=350)


def test_the_prior_of_a_chain_is_what_its_steps_say():
    """Without results, the second of two linked ratings is as uncertain as both steps together."""
    precision = np.array([[1 / 30**2 + 1 / 40**2, -1 / 40**2, 0], [-1 / 40**2, 1 / 40**2, 0], [0, 0, 1.0]])
    nothing = Comparisons(np.zeros((0, 2), int), np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    found = fit(nothing, 3, {2: 0.0}, precision)
    assert [rating.std for rating in found] == pytest.approx([30, 50, 0])


def test_a_reference_pool_gives_a_player_the_rating_that_it_has_among_them():
    """Three players of known strength are held: a fourth one is found between them, in every tournament alike."""
    true = {"p0": 900.0, "p1": 1200.0, "p2": 1500.0, "p3": 1330.0}
    held = {name: true[name] for name in ("p0", "p1", "p2")}
    rng = np.random.default_rng(3)
    for _ in range(2):
        rows = tournament(rng, [*true.values()], 400)
        for found in (ratings(rows, held).players, ratings([*rows, Reference({"p0": 0.0}), Reference(held)]).players):
            assert {name: found[name] for name in held} == {name: (r, 0, r, r) for name, r in held.items()}
            assert found["p3"].low < true["p3"] < found["p3"].high
            assert found["p3"].std < 13
        of_one = ratings(rows, {"p0": 900.0}).players["p3"]  # the distance to one player is known less well
        assert of_one.std > 1.3 * found["p3"].std
        assert openskill_ratings(rows, held)["p3"].mean == pytest.approx(true["p3"], abs=120)


def test_players_of_whom_little_is_known_have_wide_intervals():
    found = ratings([Player("a"), Player("b"), Player("c")], {"a": 1000.0, "b": 1400.0}).players["c"]
    assert (found.mean, found.std) == pytest.approx((1200, 1000))  # it meets nobody
    rows = [Player("a"), Player("random"), Reference({"x": 5.0}), *[Match(("a", "random"), (1, 0))] * 50]
    assert ratings(rows).held == {"random": 0.0}  # nobody of the reference plays
    always_won = ratings(rows).players["a"]
    assert 400 < always_won.mean < 2000
    assert always_won.high - always_won.low > 800


def test_openskill_takes_teams_draws_and_snapshots():
    rated = OpenskillRatings()
    for row in (Player("a"), Player("b"), Match(("a", "b", "a", "b"), (1, 0, 0, 1))):
        rated.add(row)
    assert rated.of("a").mean == rated.of("b").mean == 0
    rated.add(Match(("a", "b", "b", "c"), (3, 1, 2, 0)))
    assert rated.of("a").mean > rated.of("b").mean > rated.of("c").mean
    rated.add(Match(("a", "a"), (1, -1)))
    for row in [Match(("policy_00", "a"), (1, 0), 5)] * 9:
        rated.add(row)
    rated.add(Player("policy_00_000000000005", 0, 5, "x"))
    assert rated.of("policy_00_000000000005") == rated.of("policy_00")


def test_an_exploiter_that_begins_anew_does_not_raise_the_openskill_of_those_it_meets():
    """From 0 to 500, six times. Its target is 300 better than random moves."""
    rng = np.random.default_rng(0)
    rows = [Player("random")]
    for begins in range(0, 6_000, 1_000):
        for t in range(begins, begins + 1_000):
            won = float(rng.random() < chance((t - begins) / 2 - 300))
            rows.append(Match(("policy_01", "policy_00"), (won, 1 - won), t))
            if t % 3 == 0:
                won = float(rng.random() < chance(300))
                rows.append(Match(("policy_00", "random"), (won, 1 - won), t))
        rows.append(ExploiterReset(1, begins + 1_000))
        for _ in range(100):  # its earlier self
            won = float(rng.random() < chance(200))
            rows.append(Match(("policy_01", "policy_00"), (won, 1 - won), begins + 1_000))
        rows.append(ExploiterRestarted(1, begins + 1_000))
    found = openskill_ratings(rows)
    assert 150 < found["policy_00"].mean < 450
    new = OpenskillRatings({"random": 0.0}).of("policy_01")
    assert found["policy_01"] == new
