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
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sf.storage import text_files
from sf.storage.run_dir import write_atomically

NAME = "league.jsonl"


def policy_name(policy_id: int) -> str:
    """Of a policy that learns, among the players of its matches."""
    return f"policy_{policy_id:02d}"


@dataclass(frozen=True)
class Player:
    """Who joined: a snapshot of a policy, or another player that does not change."""

    name: str
    policy: int | None = None  # that it is a snapshot of
    env_steps: int | None = None  # that it had been trained on
    path: str | None = None  # of its checkpoint: relative to the folder of the record, where it is inside
    weights: str | None = None  # the fingerprint of those of a checkpoint that comes from elsewhere


@dataclass(frozen=True)
class Match:
    """A match that is over. players: of each agent, so one who plays several occurs as often. scores: of each agent.

    probability: with which a learning policy was to meet this opponent of its pool.
    journal: the file and line of `sf.storage.match_journal` that it comes from. clocks: where several policies learn,
    the env steps of each, by its name.
    """

    players: tuple[str, ...]
    scores: tuple[float, ...]
    env_steps: int | None = None  # that the learning policy had been trained on; None in a tournament
    probability: float | None = None
    journal: tuple[str, int] | None = None
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
    """What a tournament is about. values: by name, as JSON has them."""

    values: Mapping[str, Any]


@dataclass(frozen=True)
class Finished:
    """The matches of this pair of a tournament are all above."""

    players: tuple[str, str]
    env_faults: int = 0


_KIND: Mapping[type, str] = {  # the words on disk, which stay; the fields of these classes are those of the row
    Player: "player",
    ExploiterReset: "anew",
    ExploiterRestarted: "begun",
    Reference: "reference",
    Finished: "finished",
}
Row = Player | Match | ExploiterReset | ExploiterRestarted | Reference | Settings | Finished


def append(path: Path, rows: Sequence[Row]) -> None:
    """Append all rows, or none, and wait until they are on the disk. What a kill left of a line is removed first.

    Raises OSError where that is not possible.
    """
    text_files.append(path, _encoded(rows))


def rewrite(path: Path, rows: Sequence[Row]) -> None:
    """These rows alone, in place of all others. Raises OSError where that is not possible."""
    write_atomically(path, _encoded(rows))


def read(path: Path) -> list[Row]:
    """As `rows_of`, all at once."""
    return list(rows_of(path))


def players_of(path: Path) -> Iterator[Player]:
    """Those who have joined, without a look at the many matches. Raises as `rows_of` does."""
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
            raise ValueError(f"{path}, line {number}, is no row of a league ({reason}): remove the line") from None
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
    if isinstance(row, Settings):
        return {"kind": "tournament", **row.values}
    if isinstance(row, Match):
        assert len(row.players) == len(row.scores) > 0, row
        names = ("env_steps", "probability", "journal", "clocks")
        more = {name: getattr(row, name) for name in names}
        known = {name: value for name, value in more.items() if value is not None}
        return {"kind": "match", "players": list(row.players), "scores": list(row.scores), **known}
    return {"kind": _KIND[type(row)], **{name: value for name, value in asdict(row).items() if value is not None}}


def _of_json(row: Any) -> Row | None:
    """None for another kind. Raises ValueError, TypeError or KeyError where a part is missing or wrong."""
    if not isinstance(row, dict):
        raise TypeError("it must be a JSON object")
    kind = row["kind"]
    of_kind = _OF_KIND.get(kind) if isinstance(kind, str) else None
    return None if of_kind is None else of_kind(row)


def _player(row: Mapping[str, Any]) -> Player:
    path, weights = row.get("path"), row.get("weights")
    return Player(
        _text(row["name"], "name"),
        _count(row.get("policy"), "policy"),
        _count(row.get("env_steps"), "env_steps"),
        None if path is None else _text(path, "path"),
        None if weights is None else _text(weights, "weights"),
    )


def _match(row: Mapping[str, Any]) -> Match:
    players = tuple(_text(name, "a player") for name in _list(row["players"], "players"))
    scores = tuple(_score(score) for score in _list(row["scores"], "scores"))
    if not players or len(players) != len(scores):
        raise ValueError(f"{len(players)} players, but {len(scores)} scores")
    probability, journal, clocks = row.get("probability"), row.get("journal"), row.get("clocks")
    return Match(
        players,
        scores,
        _count(row.get("env_steps"), "env_steps"),
        None if probability is None else _score(probability),
        None if journal is None else _line(journal),
        None if clocks is None else _clocks(clocks),
    )


def _beginning(row: Mapping[str, Any]) -> tuple[int, int]:
    policy, env_steps = _count(row["policy"], "policy"), _count(row["env_steps"], "env_steps")
    if policy is None or env_steps is None:
        raise TypeError("policy and env_steps are whole numbers")
    return policy, env_steps


def _finished(row: Mapping[str, Any]) -> Finished:
    first, second = (_text(name, "a player") for name in _list(row["players"], "players"))
    return Finished((first, second), _count(row.get("env_faults"), "env_faults") or 0)


_OF_KIND: Mapping[str, Callable[[Mapping[str, Any]], Row]] = {
    "player": _player,
    "match": _match,
    "anew": lambda row: ExploiterReset(*_beginning(row)),
    "begun": lambda row: ExploiterRestarted(*_beginning(row)),
    "reference": lambda row: Reference(_ratings(row["ratings"])),
    "tournament": lambda row: Settings({name: value for name, value in row.items() if name != "kind"}),
    "finished": _finished,
}


def _ratings(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise TypeError(f"ratings is {value!r}: it must have the ratings of players by name")
    return {_text(name, "a player"): _score(rating, "a rating") for name, rating in value.items()}


def _clocks(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or None in value.values():
        raise TypeError(f"clocks is {value!r}: it must have the env steps of policies by name")
    return {_text(name, "a player"): _count(env_steps, "env_steps") or 0 for name, env_steps in value.items()}


def _line(value: Any) -> tuple[str, int]:
    file, number = _list(value, "journal")
    line = _count(number, "the line of a journal")
    if line is None:
        raise TypeError("the line of a journal is missing")
    return _text(file, "the file of a journal"), line


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} is {value!r}: it must be text")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{name} is {value!r}: it must be a list")
    return value


def _count(value: Any, name: str) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise TypeError(f"{name} is {value!r}: it must be a whole number")
    return value


def _score(value: Any, name: str = "a score") -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError(f"{name} is {value!r}: it must be a number")
    return float(value)
