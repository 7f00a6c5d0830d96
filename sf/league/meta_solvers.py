"""Meta-solvers: which mixture of the players of a payoff table to meet, or to judge players by. Pure.

A meta-game lets two sides choose a player each; the payoff [P, P] is what the row's player gains from the column's, who
loses as much. A solver maps it to a mixture [P], shares that add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from sf.system.machine import extras

_TOLERANCE = 1e-6  # of payoffs of size 1; the linear programs are solved to 1e-7


class NashAverage(NamedTuple):
    """mixture: [P] the Nash mixture. skill: [P] what each player gains from it: 0 at most, and 0 in the mixture."""

    mixture: np.ndarray
    skill: np.ndarray


def uniform(payoff: np.ndarray) -> np.ndarray:
    """Every player as often as the others."""
    return np.full(len(payoff), 1 / len(payoff))


def latest(payoff: np.ndarray) -> np.ndarray:
    """The last player alone, which is the newest in a table in the order of joining."""
    return np.eye(len(payoff))[-1]


def nash(payoff: np.ndarray) -> np.ndarray:
    """The mixture of rows of a zero-sum game that gains the most from its worst opponent; of several the most even one.

    payoff: [P, Q], what a row gains from a column. The value is that of the linear program: maximise v where
    payoff^T p >= v. Of all p that reach it this is the one of the highest entropy (Ortiz, Schapire and Kakade 2007), so
    the answer is unique, and equal players have equal shares. Raises ValueError where SciPy is not installed.
    """
    extras.require("league", "scipy", purpose="a Nash mixture")
    assert payoff.ndim == 2, payoff.shape
    assert np.isfinite(payoff).all(), payoff
    game = payoff / max(float(np.abs(payoff).max()), 1e-300)
    value, first = _maximin(game)
    corners = [_most(game, value, row) for row in range(len(game))]
    inside = np.mean([first, *corners], axis=0)  # where any optimal mixture has a share, so does this one
    support = np.flatnonzero(np.max([first, *corners], axis=0) > _TOLERANCE)
    mixture = np.zeros(len(game))
    mixture[support] = _most_even(game[support], value, _normalized(inside[support]))
    if (mixture @ game).min() < value - _TOLERANCE:  # rounding: the mixture inside is optimal, too
        mixture = _normalized(inside)
    return mixture


def alpharank(payoff: np.ndarray) -> np.ndarray:
    """The stationary distribution of alpha-rank (Omidshafiei et al. 2019), by OpenSpiel, whose defaults it takes.

    The largest payoff is scaled to 1, so the unit of the payoffs does not matter: how hard the evolution selects
    depends on their size, and OpenSpiel's exponentials overflow where two of them are 7 apart. Raises ValueError where
    OpenSpiel is not installed.
    """
    extras.require("openspiel", "pyspiel", "open_spiel", purpose="alpha-rank")
    from open_spiel.python.egt import alpharank as of_openspiel  # noqa: PLC0415  an extra

    game = np.asarray(payoff, np.float64)
    largest = float(np.abs(game).max())
    if largest == 0:  # a single player, or players that gain nothing from each other
        return uniform(game)
    with np.errstate(over="ignore"):
        _, _, mixture, _, _ = of_openspiel.compute([game / largest])
    return _normalized(np.real(mixture))


SOLVERS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "nash": nash,
    "uniform": uniform,
    "latest": latest,
    "alpharank": alpharank,
}


def _uniform_by_seat(payoffs: np.ndarray) -> list[np.ndarray]:
    return [np.full(size, 1 / size) for size in payoffs.shape[:-1]]


def _nash_by_seat(payoffs: np.ndarray) -> list[np.ndarray]:
    """Solves a game of two seats. Half of the difference of what both win makes any game zero-sum."""
    assert payoffs.ndim == 3, payoffs.shape
    game = (payoffs[..., 0] - payoffs[..., 1]) / 2
    return [nash(game), nash(-game.T)]


def _alpharank_by_seat(payoffs: np.ndarray) -> list[np.ndarray]:
    """Returns how often the stationary distribution of alpha-rank over profiles has each player, see `alpharank`."""
    extras.require("openspiel", "pyspiel", "open_spiel", purpose="alpha-rank")
    from open_spiel.python.egt import alpharank as of_openspiel  # noqa: PLC0415  an extra

    sizes, num_seats = payoffs.shape[:-1], payoffs.shape[-1]
    largest = float(np.abs(payoffs).max())
    if largest == 0 or max(sizes) == 1:
        return _uniform_by_seat(payoffs)
    with np.errstate(over="ignore"):
        _, _, found, _, _ = of_openspiel.compute([payoffs[..., seat] / largest for seat in range(num_seats)])
    profiles = _normalized(np.real(found)).reshape(sizes)
    return [profiles.sum(axis=tuple(axis for axis in range(num_seats) if axis != seat)) for seat in range(num_seats)]


SOLVERS_BY_SEAT: Mapping[str, Callable[[np.ndarray], list[np.ndarray]]] = {
    "nash": _nash_by_seat,
    "uniform": _uniform_by_seat,
    "latest": lambda payoffs: [np.eye(size)[-1] for size in payoffs.shape[:-1]],
    "alpharank": _alpharank_by_seat,
}
"""The solvers for seats with a population each: from the payoffs [K, ..., K, S] to a mixture [K] for each seat."""


def nash_average(payoff: np.ndarray) -> NashAverage:
    """Nash averaging (Balduzzi et al. 2018): players judged by what they gain from the Nash mixture of all.

    payoff: [P, P], antisymmetric. A player that is there twice, or many weak ones, change nobody's skill.
    """
    assert np.allclose(payoff, -payoff.T), payoff
    mixture = nash(payoff)
    return NashAverage(mixture, np.minimum(payoff @ mixture, 0.0) + 0.0)  # above 0 is rounding


def _maximin(game: np.ndarray) -> tuple[float, np.ndarray]:
    """The value of the game, and a mixture that reaches it."""
    num_rows, num_columns = game.shape
    solved = _linear_program(  # over p and v
        np.append(np.zeros(num_rows), -1.0),
        np.hstack([-game.T, np.ones((num_columns, 1))]),
        np.zeros(num_columns),
        np.append(np.ones(num_rows), 0.0),
        [(0, 1)] * num_rows + [(None, None)],
    )
    mixture = _normalized(solved[:-1])
    return float((mixture @ game).min()), mixture


def _most(game: np.ndarray, value: float, row: int) -> np.ndarray:
    """The optimal mixture with as much of the row as there can be."""
    num_rows, num_columns = game.shape
    limit = np.full(num_columns, -value + _TOLERANCE / 100)
    return _normalized(_linear_program(-np.eye(num_rows)[row], -game.T, limit, np.ones(num_rows), [(0, 1)] * num_rows))


def _linear_program(
    cost: np.ndarray, rows: np.ndarray, limits: np.ndarray, ones: np.ndarray, bounds: list[tuple[float | None, ...]]
) -> np.ndarray:
    """x of the least cost @ x with rows @ x <= limits and ones @ x = 1."""
    from scipy.optimize import linprog  # noqa: PLC0415  an extra, and slow to import

    solved = linprog(cost, A_ub=rows, b_ub=limits, A_eq=ones[None], b_eq=[1.0], bounds=bounds, method="highs")
    assert solved.status == 0, solved.message
    return solved.x


def _most_even(game: np.ndarray, value: float, start: np.ndarray) -> np.ndarray:
    """Finds the optimal mixture of these rows with the highest entropy. start: [S], optimal and positive."""
    from scipy.optimize import LinearConstraint, minimize  # noqa: PLC0415

    slack = start @ game - value
    is_tight = slack <= 10 * _TOLERANCE  # for all optimal mixtures, since `start` lies inside of them
    directions = _null_space(np.vstack([game[:, is_tight].T, np.ones(len(start))]))
    if directions.shape[1] == 0:
        return start
    constraints = [LinearConstraint(directions, -start, np.inf)]
    if not is_tight.all():
        constraints.append(LinearConstraint(game[:, ~is_tight].T @ directions, -slack[~is_tight], np.inf))

    def negative_entropy(z: np.ndarray) -> tuple[float, np.ndarray]:
        p = np.maximum(start + directions @ z, 1e-12)
        return float(p @ np.log(p)), directions.T @ (np.log(p) + 1)

    origin = np.zeros(directions.shape[1])
    solved = minimize(
        negative_entropy, origin, jac=True, method="SLSQP", constraints=constraints, options={"ftol": 1e-12}
    )
    return _normalized(start + directions @ solved.x)


def _null_space(matrix: np.ndarray) -> np.ndarray:
    """[S, D], orthonormal: the directions in which the product with the matrix does not change."""
    _, sizes, directions = np.linalg.svd(matrix)
    rank = int((sizes > 1e-5 * sizes[0]).sum())
    return directions[rank:].T


def _normalized(mixture: np.ndarray) -> np.ndarray:
    positive = np.maximum(mixture, 0.0)
    return positive / positive.sum()
