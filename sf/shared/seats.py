"""Seats: where players that do not learn sit, while they play beside the policies that do.

The pool of players may be large. A few of them are in memory at a time, one in each seat. Who plays an actor is a
learning policy, 0 to P - 1, or P + s for the player in seat s: see `sf.shared.requests`.

A match that has begun is played to its end by the same player, and an environment draws again only at the first match
that begins `pbt_rollouts_per_draw` rollouts later. So a seat changes hands in steps, and tables say which one is done;
each entry has one writer:

1. The parent closes the seat: no environment draws it any more.
2. Rollout workers count the environments that have drawn it and still play against it, by group. A worker counts first
   and looks then whether the seat is open, so that the parent, which closes first and looks then at the counts, never
   misses one.
3. When there is none, the parent writes the name of the next player, and then a new `turn`.
4. The player worker loads that player and writes its turn into `loaded`, or into `failed`.
5. The parent opens the seat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sf.system.arrays import Field, SharedArrays

_LONGEST_NAME = 512  # bytes


@dataclass(frozen=True)
class Seats:
    """The tables, of S seats and G groups. Policies share the seats out: seat s is for matches of policy s modulo P.
    If a match has O players, each in a role of its own, seat s is for the one with number (s // P) modulo O.

    tables:
        `is_open` [S], `turn` [S] the number of players that the seat has had, `player_idx` [S] the number of the
            present one in the pool, `name` [S, ...] its name in UTF-8, `weight` [S] how likely the seat is drawn beside
            others that are open: written by the parent.
        `loaded` [S], `failed` [S] the turn of the player that is in memory, or that could not be loaded, `loading_s`
            [S] what it took to load the one in memory: written by the player worker.
        `in_play` [G, S] environments of a group in which the seat plays: written by the rollout worker of the group.
    """

    tables: SharedArrays
    num_policies: int
    num_opposed: int = 1

    @classmethod
    def allocate(cls, num_seats: int, num_groups: int, num_policies: int, num_opposed: int = 1) -> Seats:
        fields = [
            Field("is_open", (num_seats,), np.bool_),
            Field("weight", (num_seats,), np.float64),
            Field("turn", (num_seats,), np.int64),
            Field("player_idx", (num_seats,), np.int64),
            Field("name", (num_seats, _LONGEST_NAME), np.uint8),
            Field("loaded", (num_seats,), np.int64),
            Field("failed", (num_seats,), np.int64),
            Field("loading_s", (num_seats,), np.float64),
            Field("in_play", (num_groups, num_seats), np.int32),
        ]
        seats = cls(SharedArrays(fields, name="sf-seats"), num_policies, num_opposed)
        seats.tables["weight"][:] = 1.0
        return seats

    @property
    def num_seats(self) -> int:
        return len(self.tables["turn"])

    def of_policy(self, policy_id: int, opposed: int = 0) -> range:
        """opposed: which of the players of a match it is for."""
        return range(policy_id + opposed * self.num_policies, self.num_seats, self.num_policies * self.num_opposed)

    # The parent

    def give(self, seat: int, player_idx: int, name: str) -> None:
        """A seat that is closed, and in which nobody plays, to a player."""
        encoded = np.frombuffer(name.encode()[:_LONGEST_NAME], np.uint8)
        row = self.tables["name"][seat]
        row[: len(encoded)] = encoded
        row[len(encoded) :] = 0
        self.tables["player_idx"][seat] = player_idx
        self.tables["turn"][seat] += 1

    def weigh(self, seat: int, weight: float) -> None:
        self.tables["weight"][seat] = weight

    def set_open(self, seat: int, is_open: bool) -> None:
        self.tables["is_open"][seat] = is_open

    def is_idle(self, seat: int) -> bool:
        """Whether nobody plays against it."""
        return not self.tables["in_play"][:, seat].any()

    def is_loaded(self, seat: int) -> bool:
        return bool(self.tables["loaded"][seat] == self.tables["turn"][seat])

    def loading_s(self, seat: int) -> float:
        return float(self.tables["loading_s"][seat])

    def has_failed(self, seat: int) -> bool:
        return bool(self.tables["failed"][seat] == self.tables["turn"][seat])

    def recover_worker(self, groups: Sequence[int]) -> None:
        """After the death of the rollout worker of these groups: its matches are over."""
        self.tables["in_play"][list(groups)] = 0

    # The player worker

    def turn(self, seat: int) -> int:
        """0 before the first player."""
        return int(self.tables["turn"][seat])

    def name(self, seat: int) -> str:
        return self.tables["name"][seat].tobytes().rstrip(b"\0").decode()

    def has_loaded(self, seat: int, turn: int, loading_s: float) -> None:
        self.tables["loading_s"][seat] = loading_s
        self.tables["loaded"][seat] = turn

    def could_not_load(self, seat: int, turn: int) -> None:
        self.tables["failed"][seat] = turn

    # A rollout worker

    def draw(self, policy_id: int, rng: np.random.Generator, opposed: int = 0) -> int | None:
        """Draws a seat for a match of this policy; None if none is open. opposed: see `of_policy`."""
        is_open = [seat for seat in self.of_policy(policy_id, opposed) if self.tables["is_open"][seat]]
        weights = self.tables["weight"][is_open]
        return int(rng.choice(is_open, p=weights / weights.sum())) if is_open else None

    def sit_down(self, group_idx: int, seat: int) -> int | None:
        """Begin to play against it. Returns the number of the player; None where the seat has just been closed."""
        self.tables["in_play"][group_idx, seat] += 1
        if not self.tables["is_open"][seat]:
            self.tables["in_play"][group_idx, seat] -= 1
            return None
        return int(self.tables["player_idx"][seat])

    def get_up(self, group_idx: int, seat: int) -> None:
        self.tables["in_play"][group_idx, seat] -= 1
