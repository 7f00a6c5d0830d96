"""league.jsonl: the players and the matches of a league, one JSON object a line.

A run that trains against its past selves writes one, and so does a tournament. Rows are only ever appended. A kill may
tear the last line: whoever reads ignores it, and the next append removes it.

{"kind": "player", "name": "policy_00_000000409600", "policy": 0, "env_steps": 409600, "path": "league/..."}
{"kind": "player", "name": "random"}
{"kind": "match", "env_steps": 412345, "players": ["policy_00", "policy_00_000000409600"], "scores": [1.0, -1.0]}
{"kind": "anew", "policy": 2, "env_steps": 500000}    # an exploiter has won and begins anew
{"kind": "reference", "ratings": {"random": 0.0}}    # from here on these players are held at these ratings

A tournament adds two kinds: its settings come first, and a row `finished` ends the matches of a pair. Other kinds are
left to those who know them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from sf.storage import text_files
from sf.storage.json_rows import row_of
from sf.storage.run_dir import write_atomically

NAME = "league.jsonl"


def policy_name(policy_id: int) -> str:
    """Names a policy that learns among the players of its matches."""
    return f"policy_{policy_id:02d}"


@dataclass(frozen=True)
class Player:
    """Records who joined: a snapshot of a policy, or another fixed player."""

    name: str
    policy: int | None = None  # that it is a snapshot of
    env_steps: int | None = None  # that it had been trained on
    path: str | None = None  # of its checkpoint: relative to the folder of the record, where it is inside
    weights: str | None = None  # the fingerprint of those of a checkpoint that comes from elsewhere


@dataclass(frozen=True)
class Match:
    """A match that is over. players: of each agent, or team, so one who plays several occurs as often. scores: of each.

    probability: with which a learning policy was to meet this opponent of its pool.
    clocks: where several policies learn, the env steps of each, by its name.
    """

    players: tuple[str, ...]
    scores: tuple[float, ...]
    env_steps: int | None = None  # that the learning policy had been trained on; None in a tournament
    probability: float | None = None
    clocks: Mapping[str, int] | None = None

    def env_steps_of(self, player: str) -> int | None:
        """That a policy had been trained on when it played."""
        return self.env_steps if self.clocks is None else self.clocks.get(player, self.env_steps)


@dataclass(frozen=True)
class ExploiterReset:
    """An exploiter is to start again from the weights that it began with. env_steps: of its training so far."""

    policy: int
    env_steps: int


@dataclass(frozen=True)
class ExploiterRestarted:
    """The learner of an exploiter has the weights that a reset asked for."""

    policy: int
    env_steps: int


@dataclass(frozen=True)
class Reference:
    """Fixed players are held at these ratings, by name (`sf.league.reference`). The last such row counts."""

    ratings: Mapping[str, float]


@dataclass(frozen=True)
class Settings:
    """Says what a tournament is about. values: by name, as JSON has them."""

    values: Mapping[str, Any]


@dataclass(frozen=True)
class Finished:
    """The matches of this pair of a tournament are all above."""

    players: tuple[str, str]
    env_faults: int = 0


Row = Player | Match | ExploiterReset | ExploiterRestarted | Reference | Settings | Finished
_KINDS: Mapping[str, type[Row]] = {  # the words on disk, which stay; the fields of these classes are those of the row
    "player": Player,
    "match": Match,
    "anew": ExploiterReset,
    "begun": ExploiterRestarted,
    "reference": Reference,
    "finished": Finished,
    "tournament": Settings,
}
_WORDS = {kind: word for word, kind in _KINDS.items()}


def scores_of(match: Match) -> dict[str, float]:
    """The score of each player of a match: the mean over its agents, who are a team."""
    of_agents: dict[str, list[float]] = {}
    for name, score in zip(match.players, match.scores, strict=True):
        of_agents.setdefault(name, []).append(score)
    return {name: sum(scores) / len(scores) for name, scores in of_agents.items()}


def meetings(match: Match) -> Iterator[tuple[str, str, float, float]]:
    """Each player of a match with each other one, and their scores. A pair is there in both orders."""
    for (name, score), (other, other_score) in permutations(scores_of(match).items(), 2):
        yield name, other, score, other_score


def result(score: float, other_score: float) -> float:
    """Returns 1 if the first score wins by being higher, 0.5 for a draw, 0 for a loss."""
    return 1.0 if score > other_score else 0.5 if score == other_score else 0.0


def append(path: Path, rows: Sequence[Row]) -> None:
    """Append all rows, or none, and wait until they are on the disk: see `text_files.append`. Raises OSError."""
    text_files.append(path, _encoded(rows))


def rewrite(path: Path, rows: Sequence[Row]) -> None:
    """These rows alone, in place of all others. Raises OSError where that is not possible."""
    write_atomically(path, _encoded(rows))


def read(path: Path) -> list[Row]:
    """Reads what `rows_of` yields, all at once."""
    return list(rows_of(path))


def players_of(path: Path) -> Iterator[Player]:
    """Yields those who have joined, without a look at the many matches. Raises as `rows_of` does."""
    for row in rows_of(path, with_word=b'"player"'):
        if isinstance(row, Player):
            yield row


def reference_of(path: Path) -> Mapping[str, float]:
    """The ratings at which players are held; empty where the record has none. Raises as `rows_of` does."""
    ratings: Mapping[str, float] = {}
    for row in rows_of(path, with_word=b'"reference"'):
        if isinstance(row, Reference):
            ratings = row.ratings
    return ratings


def rows_of(path: Path, with_word: bytes = b"") -> Iterator[Row]:
    """All whole rows of the kinds above, in their order, one by one: a long run has millions.

    with_word: leave out the lines that lack it. Raises ValueError where a line is damaged or the record cannot be read,
    FileNotFoundError where there is none.
    """
    for number, line in enumerate(_lines(path), start=1):
        if with_word not in line:
            continue
        try:
            row = _of_json(json.loads(line))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ValueError(
                f"{path}, line {number}, cannot be read as a row of a league ({reason}): remove the line"
            ) from None
        if row is not None:
            yield row


def _lines(path: Path) -> Iterator[bytes]:
    try:
        yield from text_files.whole_lines(path)
    except (PermissionError, IsADirectoryError) as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): restore the file, or its permissions") from None


def _encoded(rows: Sequence[Row]) -> bytes:
    return b"".join(json.dumps(_to_json(row), allow_nan=False).encode() + b"\n" for row in rows)


def _to_json(row: Row) -> dict[str, Any]:
    assert not isinstance(row, Match) or len(row.players) == len(row.scores) > 0, row
    if isinstance(row, Settings):
        return {"kind": _WORDS[Settings], **row.values}
    return {"kind": _WORDS[type(row)], **{name: value for name, value in vars(row).items() if value is not None}}


def _of_json(row: Any) -> Row | None:
    """Returns None for another kind. Raises ValueError, TypeError or KeyError if a part is missing or wrong."""
    if not isinstance(row, dict):
        raise TypeError("it must be a JSON object")
    kind = _KINDS.get(row["kind"]) if isinstance(row["kind"], str) else None
    if kind is None:
        return None
    if kind is Settings:
        return Settings({name: value for name, value in row.items() if name != "kind"})
    found = row_of(kind, row)
    if isinstance(found, Match) and not 0 < len(found.players) == len(found.scores):
        raise ValueError(f"{len(found.players)} players, but {len(found.scores)} scores")
    return found
