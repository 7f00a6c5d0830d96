"""Defines the settings of a game, which `env_kwargs` may give."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sf.envs.errors import UsageError
from sf.envs.field_types import require

GAMES = ("mini", "flag", "tower")
OPPONENTS = {"mini": ("simple", "hit_and_run", "random"), "flag": ("flag", "random"), "tower": ()}
MIXED = "mixed"
_DEFAULT_OPPONENT = {"mini": "simple", "flag": "flag", "tower": "nobody"}
_FRAME_SKIP = {"mini": 50, "flag": 10, "tower": 50}
MOST_TICKS = 1_000_000  # of a game
_LIMITS = {
    "frame_skip": (1, MOST_TICKS),
    "opponent_frame_skip": (1, MOST_TICKS),
    "history": (1, 64),
    "max_ticks": (1, MOST_TICKS),
    "size": (16, 256),
    "room": (16, 4096),
    "extra": (0, 4096),
}
# What a game of Tower Defense always has, and why.
_OF_TOWER = {
    "actions": ("global", "there is one kind of unit to command"),
    "opponent_frame_skip": (50, "nobody commands"),
    "size": (20, "the maze has a size of 20"),
}
_LARGEST_SHARE = 1e9
_WITHOUT_TROOPS = 6  # units of a side at the beginning, at most, with the one troop that it may have anyway


@dataclass(frozen=True)
class Settings:
    """Decides how a game is played. Each field is a keyword argument of the environments and a name in `env_kwargs`."""

    game: str = "mini"

    opponent: str | Mapping[str, float] | None = None
    """An AI, "mixed" for all but random as often as each other, or a mapping of AIs to how often each plays.
    Default: simple in Mini-RTS, flag in Capture the Flag."""

    frame_skip: int | None = None
    """Ticks from one action to the next. Default: 50, in Capture the Flag 10."""

    opponent_frame_skip: int = 50
    """Ticks from one command of the AI to the next."""

    actions: str = "global"
    """"global": one command to the whole side. "by_type": one to each kind of unit, with a mask of what is possible."""

    history: int = 1
    """How many observations are shown at once, the newest first."""

    max_ticks: int | None = None
    """A game that lasts longer is a draw. Default: 6000."""

    size: int = 20
    """Cells of a side of the map."""

    room: int = 64
    """How many units a side may have."""

    extra: int = 0
    """Mini-RTS: more troops of each side at the beginning; fewer, as many of each side, where the map is full."""

    replays: str | None = None
    """A folder, into which each finished game is written as a replay."""

    replay: str | None = None
    """A replay to be played in the place of a game: whatever is chosen, the commands are those of the file."""

    def __post_init__(self) -> None:
        require(self.game in GAMES, f"game is {self.game!r}: {', '.join(GAMES)}")
        require(self.actions in ("global", "by_type"), f"actions is {self.actions!r}: global or by_type")
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            is_right = value is None or (type(value) is int and least <= value <= most)
            require(is_right, f"{name} is {value!r}: an integer from {least} to {most}")
        if self.game == "tower":
            for name, (value, why) in _OF_TOWER.items():
                given = getattr(self, name)
                require(given == value, f"{name} is {given!r}, but {why} in Tower Defense: leave it out")
        require(self.extra == 0 or self.game == "mini", f"extra is {self.extra}, but is for Mini-RTS: leave it out")
        needed = self.extra + _WITHOUT_TROOPS
        require(needed <= self.room, f"extra is {self.extra}, but room is {self.room}: give room for {needed} units")
        for name in ("replays", "replay"):
            value = getattr(self, name)
            require(value is None or isinstance(value, str | os.PathLike), f"{name} is {value!r}: a path")
        require(
            self.replays is None or self.replay is None,
            "replay and replays are both given, but a game that is played again is not written again: leave one out",
        )
        self.mixture  # noqa: B018  a wrong opponent is reported at once

    @property
    def skip(self) -> int:
        return self.frame_skip or _FRAME_SKIP[self.game]

    @property
    def most_ticks(self) -> int:
        return self.max_ticks or 6000

    @property
    def mixture(self) -> dict[str, float]:
        """Returns the share of each AI, in all 1. Raises UsageError for one that does not play this game."""
        known = OPPONENTS[self.game]
        given = _DEFAULT_OPPONENT[self.game] if self.opponent is None else self.opponent
        if not known:
            require(given == "nobody", f"opponent is {given!r}, but Tower Defense has none: leave it out")
            return {"nobody": 1.0}
        if isinstance(given, str):
            names = [name for name in known if name != "random"] if given == MIXED else [given]
            given = dict.fromkeys(names, 1.0)
        are_known = isinstance(given, Mapping) and len(given) > 0 and all(name in known for name in given)
        require(
            are_known,
            f"opponent is {self.opponent!r}: {', '.join((*known, MIXED))}, or a mapping of AIs to how often each plays",
        )
        shares = list(given.values())
        are_shares = all(isinstance(share, int | float) and 0 <= share <= _LARGEST_SHARE for share in shares)
        require(
            are_shares and sum(shares) > 0,
            f"opponent is {self.opponent!r}: give positive numbers up to {_LARGEST_SHARE:g}",
        )
        return {name: share / sum(shares) for name, share in given.items()}


def settings(game: str, kwargs: Mapping[str, Any], where: str, num_players: int = 1) -> Settings:
    """Raises UsageError, with `where`, for a name that is not known or a value that cannot be.

    num_players: how many are asked. Where both are, no AI plays.
    """
    names = [field.name for field in fields(Settings) if field.name != "game"]
    wrong = [name for name in kwargs if name not in names]
    if wrong:
        raise UsageError(f"{where}: {wrong[0]!r} is unknown; the settings are {', '.join(names)}")
    if num_players == 2 and "opponent" in kwargs:
        raise UsageError(
            f"{where}: opponent is for one player against an AI: leave it out, or take a game of one player"
        )
    try:
        return Settings(game=game, **kwargs)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
