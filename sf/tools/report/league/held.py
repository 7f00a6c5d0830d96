"""The ratings at which the flags of `sf-league` hold players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sf.envs import EnvOptions
from sf.league import reference
from sf.league.players.entrants import identities
from sf.league.record import Player, Row, Settings
from sf.league.reference import played
from sf.storage.run_dir import RunDir


def env_of(directory: Path, rows: Sequence[Row]) -> str | None:
    """Returns what is played in a run or a tournament, see `sf.league.reference.played`; None if it is not known."""
    try:
        if rows and isinstance(rows[0], Settings):
            found = {**rows[0].values, **rows[0].values["options"]}
        else:
            found = RunDir(directory).saved_flags() or {}
        return played(str(found["env"]), EnvOptions(env_kwargs=found.get("env_kwargs", "{}")).kwargs)
    except (ValueError, KeyError, TypeError):
        return None


def held_by(
    anchor: str | None, pool: Path | None, env: str | None, rows: Sequence[Row], directory: Path
) -> Mapping[str, float] | None:
    """Returns ratings by player; None if the record says them. anchor, pool: the flags. rows, directory: of the record.

    Raises ValueError where nobody of the pool plays.
    """
    if anchor is not None:
        return {anchor: 0.0}
    if pool is None:
        return None
    players = (row for row in rows if isinstance(row, Player))
    try:
        return reference.read(pool).held(env, identities(players, directory))
    except FileNotFoundError:
        raise ValueError(f"reference is {pool}, and there is no such file: name another") from None
