"""psro.jsonl: one line an iteration, written when it is over.

The first line, iteration 0, is the population that all begins with: random moves. A kill may tear the last line, which
the next append removes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sf.storage import text_files
from sf.tools.psro.flags import files_of

NAME = "psro.jsonl"
RESPONSES = "responses"  # the folder of the runs of best responses, beside it


@dataclass(frozen=True)
class Iteration:
    """A player that has joined, and the game among all players so far.

    player: its name. path: of its policy, in the directory; None for random moves. trained_against: the mixture that it
    is a best response to, by player. payoffs: what it wins on average against each player before it. mixture: what the
    meta-solver says of the game with it, by player. exploitability: of that mixture; None where it is not known.
    env_steps, seconds: of all iterations so far. settings: of the search, which a resumed one must have, too.
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


def append(path: Path, iteration: Iteration) -> None:
    """Raises OSError where it cannot be written."""
    text_files.append(path, json.dumps(asdict(iteration), allow_nan=False).encode() + b"\n")


def read(path: Path) -> list[Iteration]:
    """Returns all whole lines; none if there is no file. Raises ValueError if the file or a line cannot be read."""
    with files_of(path.parent):
        lines = list(text_files.whole_lines(path)) if path.exists() else []
    found: list[Iteration] = []
    for number, line in enumerate(lines, start=1):
        try:
            iteration = Iteration(**json.loads(line))
            if iteration.iteration != len(found) or len(iteration.payoffs) != len(found):
                raise ValueError(f"it is iteration {iteration.iteration} of {len(iteration.payoffs)} payoffs")
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}, line {number}, is not a valid iteration ({error}): restore the file") from None
        found.append(iteration)
    return found


def payoff_table(payoffs: Sequence[Sequence[float]]) -> np.ndarray:
    """[K, K] what a row's player wins from a column's, who loses as much. payoffs: of each against all before it."""
    table = np.zeros((len(payoffs), len(payoffs)))
    for row, against_earlier in enumerate(payoffs):
        table[row, :row] = against_earlier
        table[:row, row] = -np.array(against_earlier)
    return table
