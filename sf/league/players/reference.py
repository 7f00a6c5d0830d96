"""Whom a reference pool (`sf.league.reference`) knows here: policies by their weights, others by their names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from sf.envs.errors import UsageError
from sf.league import record, reference
from sf.league.players.entrants import Entrant
from sf.league.record import Player
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint


def find_reference(
    named: str | None, played: str, entrants: Mapping[str, Entrant], run_dir: Path, resumes: bool
) -> Mapping[str, float]:
    """The ratings at which players of the pool are held, by their names there. None: nobody is.

    played: see `sf.league.reference.played`. run_dir: of the run. resumes: whether it goes on with what is there: the
    players of its record are those that have joined it, and the ratings of its record stay where the file is gone.
    Raises ValueError where the file has no ratings of these players.
    """
    if named is None:
        return {}
    path = run_dir / record.NAME
    is_there = resumes and path.is_file()
    try:
        pool = reference.read(Path(named))
    except FileNotFoundError:
        if is_there and (before := record.reference_of(path)):
            print(f"reference_ratings is {named}, which is gone. The ratings in {path} stay", file=sys.stderr)
            return before
        raise UsageError(
            f"reference_ratings is {named}, and there is no such file: name one that sf-league --json has written"
        ) from None
    except ValueError as error:
        raise UsageError(f"reference_ratings: {error}") from None
    joined = [player for player in record.players_of(path) if player.policy is None] if is_there else []
    known = {
        name: checkpoint.weights_of(each) if isinstance(each, Checkpoint) else None for name, each in entrants.items()
    }
    try:
        return pool.held(played, {**known, **identities(joined, run_dir)})
    except ValueError as error:
        raise UsageError(f"reference_ratings: {error}") from None


def identities(players: Iterable[Player], directory: Path) -> dict[str, str | None]:
    """By name, the fingerprint of the weights of a policy; None of a player that has none.

    directory: of the record. A policy whose weights are neither in its row nor can be read there is left out.
    """
    found: dict[str, str | None] = {}
    for player in players:
        is_policy = (player.weights, player.path, player.policy, player.env_steps) != (None, None, None, None)
        weights = player.weights or _read(player, directory)
        if weights is not None or not is_policy:
            found[player.name] = weights
    return found


def _read(player: Player, directory: Path) -> str | None:
    if player.path is None:
        return None
    try:
        return checkpoint.weights_of(checkpoint.load(directory / player.path))
    except (OSError, ValueError):
        return None
