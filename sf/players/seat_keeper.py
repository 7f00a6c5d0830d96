"""Which player of the pool sits in which seat, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sf.players.config import OpponentChoice
from sf.players.pool import Pool
from sf.queues import IndexQueue
from sf.seats import Seats

_LOADING_SHARE = 0.05  # of the player worker's time, at most, for players that take seats: no seat is played meanwhile
_SEATED_MATCHES = 16  # that a player ends at least before another one takes its seat


@dataclass
class _Seat:
    """What the parent remembers of a seat."""

    seat: int
    policy_id: int
    player: str | None = None
    probability: float = 1.0  # with which the player was chosen
    is_open: bool = False
    is_loading: bool = False
    opened_at: float = 0.0
    num_matches: int = 0  # that have ended since


class SeatKeeper:
    """The seats of all policies that are no exploiters.

    seats: where the player worker and the rollout workers look. wake: the queue of the player worker. gone: players
    that cannot be loaded, as they are found. weights: of players that are met as a fixed mixture, by name; empty: by
    `choice`. record_all: counts the matches that have ended, writes all players to the record on disk, and returns
    whether that has them now.
    """

    def __init__(
        self,
        seats: Seats,
        num_policies: int,
        pool: Pool,
        gone: Collection[str],
        weights: Mapping[str, float],
        choice: OpponentChoice,
        wake: IndexQueue,
        rng: np.random.Generator,
        record_all: Callable[[], bool],
    ) -> None:
        self._seats = seats
        self._pool = pool
        self._gone = gone
        self._weights = weights
        self._choice: OpponentChoice = choice
        self._wake = wake
        self._rng = rng
        self._record_all = record_all
        self._of_policy = [
            [_Seat(seat, policy_id) for seat in seats.of_policy(policy_id)] for policy_id in range(num_policies)
        ]

    def see_to(self, policy_id: int) -> None:
        """The next step of `sf.seats` in each seat of this policy, where it is time for it."""
        of_policy = self._of_policy[policy_id]
        for seat in of_policy:
            self._see_to(seat, of_policy)

    def note_match(self, policy_id: int, names: Collection[str]) -> float | None:
        """A match of this policy with these players has ended. Returns the probability with which the first of those
        that are seated was chosen; None if none of them has a seat now."""
        seated = [seat for seat in self._of_policy[policy_id] if seat.player in names]
        for seat in seated:
            seat.num_matches += 1
        return seated[0].probability if seated else None

    def _see_to(self, seat: _Seat, of_policy: Sequence[_Seat]) -> None:
        if seat.is_open:
            if self._seats.has_failed(seat.seat) or self._is_long_enough(seat, of_policy):
                self._seats.set_open(seat.seat, False)
                seat.is_open = False
        elif seat.is_loading and not self._seats.has_failed(seat.seat):
            # A mixture begins when all of it is there.
            needed = of_policy if self._weights else [seat]
            if all(self._seats.is_loaded(other.seat) or self._seats.has_failed(other.seat) for other in needed):
                seat.is_loading, seat.is_open = False, True
                seat.opened_at, seat.num_matches = time.monotonic(), 0
                self._seats.set_open(seat.seat, True)
        elif self._seats.is_idle(seat.seat):
            self._give(seat, of_policy)

    def _is_long_enough(self, seat: _Seat, of_policy: Sequence[_Seat]) -> bool:
        """For the player in this seat: others have to have a turn."""
        others_wait = len(self._pool.players) - len(self._gone) > len(of_policy) and not self._weights
        others_play = all(other.is_open for other in of_policy)
        needed_s = self._seats.loading_s(seat.seat) * self._seats.num_seats / _LOADING_SHARE
        is_over = seat.num_matches >= _SEATED_MATCHES and time.monotonic() - seat.opened_at >= needed_s
        return is_over and others_wait and others_play

    def _give(self, seat: _Seat, of_policy: Sequence[_Seat]) -> None:
        """To a player that has no seat of this policy, where there is one."""
        chances = self._chances(seat, of_policy)
        # Matches are counted while the seat is that of the one who has played them. A journal says who has played by
        # the place of a player in the record, so the record is written before the first match.
        if not chances.any() or not self._record_all():
            return
        chances = chances / chances.sum()
        player_idx = int(self._rng.choice(len(chances), p=chances))
        seat.player = self._pool.players[player_idx].name
        seat.probability = float(chances[player_idx])
        seat.is_loading = True
        self._seats.give(seat.seat, player_idx, seat.player, self._weights.get(seat.player, 1.0))
        self._wake.put(0)

    def _chances(self, seat: _Seat, of_policy: Sequence[_Seat]) -> np.ndarray:
        """[players], of each to sit here, up to a factor."""
        if not self._pool.players:
            return np.zeros(0)
        if self._weights:
            chances = np.array([self._weights.get(player.name, 0.0) for player in self._pool.players])
        else:
            chances = self._pool.probabilities(seat.policy_id, self._choice)
        seated = {other.player for other in of_policy if other is not seat}
        for name, idx in self._pool.idx.items():
            if name in self._gone or name in seated:
                chances[idx] = 0.0
        return chances
