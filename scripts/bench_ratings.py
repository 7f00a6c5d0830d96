"""How good ratings are: players of known strength meet, and are rated by the fit and by openskill.

python scripts/bench_ratings.py

It prints the table of docs/league.md: how often the 95 % intervals hold the true rating, and the root mean square of
the errors in Elo, over all players but the anchor.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Mapping

import numpy as np

from sf.league.openskill_ratings import openskill_ratings
from sf.league.ratings import Rating, ratings
from sf.league.record import Match, Player, Row

_SPREAD = 300.0  # standard deviation of the players of a tournament, Elo
_SNAPSHOTS, _EVERY = 20, 400_000  # of a run, env steps
_GAIN = 1000.0  # of its policy from the first snapshot to the end
_METHODS: Mapping[str, Callable[[list[Row]], Mapping[str, Rating]]] = {
    "fit": lambda rows: ratings(rows).players,
    "openskill": openskill_ratings,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Rate players of known strength, and see how near the ratings are.")
    parser.add_argument("--tournaments", type=int, default=40, help="tournaments, or runs, of each row")
    flags = parser.parse_args()
    for num_players, num_matches in ((6, 20), (6, 100), (12, 100)):
        name = f"{num_players} players, {num_matches} matches a pair"
        report(name, flags.tournaments, lambda rng, p=num_players, m=num_matches: tournament(rng, p, m))
    for num_matches in (2_000, 10_000):
        report(f"a run, {num_matches} matches", flags.tournaments, lambda rng, m=num_matches: run(rng, m))


def report(name: str, num: int, make: Callable[[np.random.Generator], tuple[Mapping[str, float], list[Row]]]) -> None:
    """Print a line for each method."""
    held: dict[str, list[bool]] = {method: [] for method in _METHODS}
    errors: dict[str, list[float]] = {method: [] for method in _METHODS}
    for seed in range(num):
        true, rows = make(np.random.default_rng(seed))
        for method, rate in _METHODS.items():
            found = rate(rows)
            held[method] += [found[player].low <= value <= found[player].high for player, value in true.items()]
            errors[method] += [found[player].mean - value for player, value in true.items()]
    for method in _METHODS:
        error = np.sqrt(np.mean(np.square(errors[method])))
        print(f"{name}: {method}: {np.mean(held[method]):.1%} held, error {error:.0f}", flush=True)


def tournament(rng: np.random.Generator, num_players: int, num_matches: int) -> tuple[dict[str, float], list[Row]]:
    """The ratings of all players but the first, which has 0, and the rows: the matches in a random order."""
    true = np.append(0.0, rng.normal(0, _SPREAD, num_players - 1))
    matches = [pair for pair in itertools.combinations(range(num_players), 2) for _ in range(num_matches)]
    rows: list[Row] = [Player(str(p)) for p in range(num_players)]
    for k in rng.permutation(len(matches)):
        i, j = matches[k]
        rows.append(_match(rng, str(i), str(j), true[i] - true[j]))
    return {str(p): float(true[p]) for p in range(1, num_players)}, rows


def run(rng: np.random.Generator, num_matches: int) -> tuple[dict[str, float], list[Row]]:
    """The ratings of all snapshots, and the rows of a run against them and, one match in ten, random moves."""
    at = np.arange(_SNAPSHOTS + 1) * _EVERY
    wandering = np.append(0.0, np.cumsum(rng.normal(0, 20, _SNAPSHOTS)))
    true = _GAIN * (1 - np.exp(-3 * at / at[-1])) + wandering
    names = [f"policy_00_{t:012d}" for t in at[:-1]]
    rows: list[Row] = [Player("random")]
    num_joined = 0
    for t in np.sort(rng.integers(0, at[-1], num_matches)).tolist():
        while num_joined <= t // _EVERY:
            rows.append(Player(names[num_joined], 0, int(at[num_joined])))
            num_joined += 1
        now, opponent = float(np.interp(t, at, true)), int(rng.integers(num_joined))
        if rng.random() < 0.1:
            rows.append(_match(rng, "policy_00", "random", now, t))
        else:
            rows.append(_match(rng, "policy_00", names[opponent], now - true[opponent], t))
    return {name: float(value) for name, value in zip(names[:num_joined], true, strict=False)}, rows


def _match(rng: np.random.Generator, name: str, other: str, difference: float, env_steps: int | None = None) -> Match:
    won = float(rng.random() < 1 / (1 + 10 ** (-difference / 400)))
    return Match((name, other), (won, 1 - won), env_steps)


if __name__ == "__main__":
    main()
