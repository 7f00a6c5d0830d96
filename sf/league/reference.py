"""A reference pool: players that are held at the ratings which they had in one tournament.

So ratings mean the same in every run and tournament in which some of these players play, as in OpenAI Five (2019),
whose agents were rated by matches against fixed agents of known rating. `sf-league --json` writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sf.storage.json_rows import reader_of

_MOST_BYTES = 64 * 2**20
_text, _number = reader_of(str), reader_of(float)


@dataclass(frozen=True)
class ReferencePool:
    """env: what was played, see `played`; None: not known. ratings: by name. weights: the fingerprints of policies."""

    path: Path
    env: str | None
    ratings: Mapping[str, float]
    weights: Mapping[str, str]

    def held(self, env: str | None, players: Mapping[str, str | None]) -> dict[str, float]:
        """The ratings of those who play here, by the name that each has here.

        A policy is known by its weights, whatever it is called, and others by their names.
        env: what is played here; None: not known. players: by name, the fingerprint of the weights of a policy; None of
        a player that has none.
        Raises ValueError where nobody of the pool plays here, or what is played is another environment.
        """
        if None not in (env, self.env) and env != self.env:
            raise ValueError(f"{self.path} has ratings of {self.env}, and what is played is {env}: name another")
        by_weights = {weights: self.ratings[name] for name, weights in self.weights.items()}
        by_name = {name: rating for name, rating in self.ratings.items() if name not in self.weights}
        found = {}
        for name, weights in players.items():
            rating = by_name.get(name) if weights is None else by_weights.get(weights)
            if rating is not None:
                found[name] = rating
        if not found:
            raise ValueError(
                f"{self.path} rates {', '.join(self.ratings)}, and none of them plays here: add one of them as a player"
            )
        return found


def played(env: str, kwargs: Mapping[str, Any]) -> str:
    """Names what ratings are about: an environment, and with which parameters it was made."""
    return f"{env} {json.dumps(kwargs, sort_keys=True)}" if kwargs else env


def read(path: Path) -> ReferencePool:
    """Raises ValueError where it is no result of `sf-league --json`, FileNotFoundError where there is no file."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("is too large")
        found = json.loads(path.read_bytes())
        # A policy is known by its weights: one of a run that trains, whose weights have gone on, by nothing.
        players = {
            _text(player["name"], "name"): player
            for player in found["players"]
            if player.get("env_steps") is None or player.get("weights") is not None
        }
        if not players:
            raise ValueError("no players")
        env = found.get("env")
        return ReferencePool(
            path,
            None if env is None else _text(env, "env"),
            {name: _number(player["rating"]["mean"], "mean") for name, player in players.items()},
            {
                name: _text(player["weights"], "weights")
                for name, player in players.items()
                if player.get("weights") is not None
            },
        )
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): name another") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise ValueError(f"{path} has no ratings: name a file that sf-league --json has written") from None


def described(held: Mapping[str, float]) -> str:
    """Describes them as "random is held at 0, and bot:doom at 310"."""
    parts = (f"{name} {'at' if n else 'is held at'} {rating:,.0f}" for n, (name, rating) in enumerate(held.items()))
    return ", and ".join(parts)
