"""By what a reference pool (`sf.league.reference`) knows the players of a record: weights, else names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sf.league.record import Player
from sf.storage import checkpoint


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
