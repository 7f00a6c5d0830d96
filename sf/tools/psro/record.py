"""psro.jsonl: one line an iteration, written when it is over.

The first line, iteration 0, is the population that all begins with: random moves. A kill may tear the last line, which
the next append removes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sf.envs.errors import UsageError
from sf.storage import text_files
from sf.tools.psro.flags import files_of

NAME = "psro.jsonl"
RESPONSES = "responses"  # the folder of the runs of best responses, beside it


class Population(NamedTuple):
    """Holds what an iteration says of the population of a seat. seat: its name; empty where one plays all seats."""

    seat: str
    mixture: Mapping[str, float]
    response_value: float | None
    best_response_value: float | None


@dataclass(frozen=True)
class Iteration:
    """A player that has joined, and the game among all players so far.

    player: its name. path: of its policy, in the directory; None for random moves. trained_against: the mixture that it
    is a best response to, by player. payoffs: what it wins on average against each player before it. mixture: what the
    meta-solver says of the game with it, by player. exploitability: of that mixture; None where it is not known.
    env_steps, seconds: of all iterations so far. settings: of the search, which a resumed one must have, too.
    response_value: what the player wins on average against the mixture that it is a response to. best_response_value:
    what an exact best response would win; None where it is not known.
    """

    iteration: int
    player: str
    path: str | None
    trained_against: Mapping[str, float]
    payoffs: Sequence[float]
    mixture: Mapping[str, float]
    exploitability: float | None
    env_steps: int
    seconds: float
    settings: Mapping[str, Any]
    response_value: float | None = None
    best_response_value: float | None = None

    @property
    def populations(self) -> list[Population]:
        return [Population("", self.mixture, self.response_value, self.best_response_value)]

    @property
    def num_before(self) -> int:
        """Returns the iterations before it, by the payoffs that it has."""
        return len(self.payoffs)


@dataclass(frozen=True)
class SeatIteration:
    """The players that have joined the populations of all seats, by seat, and the game among all players so far.

    Mappings are by the name of the seat, and as those of `Iteration`. payoffs: pairs of a profile, the iteration at
    which the player of each seat has joined, and what each seat wins on average: of all profiles with a new player.
    """

    iteration: int
    players: Mapping[str, str]
    paths: Mapping[str, str | None]
    trained_against: Mapping[str, Mapping[str, float]]
    payoffs: Sequence[tuple[list[int], list[float]]]
    mixtures: Mapping[str, Mapping[str, float]]
    response_values: Mapping[str, float] | None
    best_response_values: Mapping[str, float] | None
    exploitability: float | None
    env_steps: int
    seconds: float
    settings: Mapping[str, Any]

    @property
    def populations(self) -> list[Population]:
        values, bests = self.response_values or {}, self.best_response_values or {}
        return [Population(seat, own, values.get(seat), bests.get(seat)) for seat, own in self.mixtures.items()]

    @property
    def num_before(self) -> int:
        """Returns the iterations before it, by the payoffs that it has."""
        return max(max(profile) for profile, _ in self.payoffs)


Line = TypeVar("Line", Iteration, SeatIteration)


def append(path: Path, iteration: Iteration | SeatIteration) -> None:
    """Raises OSError where it cannot be written."""
    text_files.append(path, json.dumps(asdict(iteration), allow_nan=False).encode() + b"\n")


def read(path: Path, kind: type[Line] = Iteration) -> list[Line]:  # type: ignore[assignment]  # a default
    """Returns all whole lines; none if there is no file. Raises ValueError if the file or a line cannot be read, or is
    of a search of the other kind.
    """
    with files_of(path.parent):
        lines = list(text_files.whole_lines(path)) if path.exists() else []
    found: list[Line] = []
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            _require_kind(path, values, kind)
            iteration = kind(**values)
            if iteration.iteration != len(found) or iteration.num_before != len(found):
                raise ValueError(f"it is iteration {iteration.iteration} of {iteration.num_before} before it")
        except UsageError:
            raise
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}, line {number}, is not a valid iteration ({error}): restore the file") from None
        found.append(iteration)
    return found


def _require_kind(path: Path, values: Any, kind: type[Iteration] | type[SeatIteration]) -> None:
    has_seats = isinstance(values, dict) and "mixtures" in values
    if has_seats != (kind is SeatIteration):
        there = "a population for each seat" if has_seats else "one population"
        raise UsageError(
            f"{path.parent} has a search with {there}: go on with --population_per_seat {str(has_seats).lower()}, or "
            "name another --experiment"
        )


def payoffs_by_seat(payoffs: Sequence[Sequence[tuple[list[int], list[float]]]]) -> np.ndarray:
    """Returns the payoffs of all profiles, [K, ..., K, S], with an axis of K iterations for each of S seats.

    payoffs: of each iteration, see `SeatIteration`.
    """
    num_seats = len(payoffs[0][0][1])
    table = np.zeros((len(payoffs),) * num_seats + (num_seats,))
    for profile, values in (pair for of_iteration in payoffs for pair in of_iteration):
        table[tuple(profile)] = values
    return table


def payoff_table(payoffs: Sequence[Sequence[float]]) -> np.ndarray:
    """[K, K] what a row's player wins from a column's, who loses as much. payoffs: of each against all before it."""
    table = np.zeros((len(payoffs), len(payoffs)))
    for row, against_earlier in enumerate(payoffs):
        table[row, :row] = against_earlier
        table[:row, row] = -np.array(against_earlier)
    return table
