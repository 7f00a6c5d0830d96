"""Decides which player of the pool sits in which seat, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from sf.config.flags.players import OpponentChoice
from sf.league.players.pool import Pool
from sf.league.players.pool_roles import PoolRoles
from sf.shared.queues import IndexQueue
from sf.shared.seats import Seats

_LOADING_SHARE = 0.05  # of the player worker's time, at most, for players that take seats: no seat is played meanwhile
_OWED_MATCHES = 16  # more than the player in a seat, which another one needs to take it: about as many are in a row


@dataclass
class _Seat:
    """Holds what the parent remembers of a seat."""

    seat: int
    player_idx: int | None = None
    is_open: bool = False
    is_loading: bool = False
    opened_at: float = 0.0


@dataclass
class _Opponents:
    """Holds what the parent remembers for a policy and a role that it meets: the seats, and the K players of the pool.

    probability: [K] with which it is to meet each. owed: [K] matches that each should have had by these, less those
    that it has had in this session. num_matches: that `owed` counts on one side alone so far.
    """

    policy_id: int
    role: int
    seats: list[_Seat]
    probability: np.ndarray = field(default_factory=lambda: np.zeros(0))
    owed: np.ndarray = field(default_factory=lambda: np.zeros(0))
    num_matches: int = 0


class SeatKeeper:
    """Keeps the seats of all policies that are no exploiters.

    Each policy is to meet a player with its probability, however few seats there are. Open seats are drawn by
    `seat_weights`, and a seat goes to the player that is owed the most matches. So the shares of many matches are the
    mean probabilities of their time, whatever closed seats and changed probabilities have done to a few of them.

    seats: where the player worker and the rollout workers look. wake: the queue of the player worker. roles: which
    players may be met in which role, and how often, if they are met as a fixed mixture; else by `choice`.
    """

    def __init__(
        self,
        seats: Seats,
        pool: Pool,
        roles: PoolRoles,
        choice: OpponentChoice,
        wake: IndexQueue,
        rng: np.random.Generator,
    ) -> None:
        self.num_policies = seats.num_policies
        self._seats = seats
        self._pool = pool
        self._roles = roles
        self._choice: OpponentChoice = choice
        self._wake = wake
        self._rng = rng
        self._of_policy = [
            [
                _Opponents(policy_id, role, [_Seat(seat) for seat in seats.of_policy(policy_id, opposed)])
                for opposed, role in enumerate(roles.opposed(policy_id))
            ]
            for policy_id in range(self.num_policies)
        ]
        self.weigh()

    @property
    def _opponents(self) -> Iterator[_Opponents]:
        for of_policy in self._of_policy:
            yield from of_policy

    @property
    def is_anybody_missing(self) -> bool:
        """Returns whether a policy has nobody of the pool to meet in some role."""
        return not all(opponents.probability.any() for opponents in self._opponents)

    def see_to(self, policy_id: int, count_matches: Callable[[], None]) -> None:
        """Take the next step of `sf.shared.seats` in each seat. count_matches: brings `note_match` the latest."""
        for opponents in self._of_policy[policy_id]:
            self._see_to(opponents, count_matches)

    def _see_to(self, opponents: _Opponents, count_matches: Callable[[], None]) -> None:
        for seat in opponents.seats:
            if seat.is_open:
                if self._seats.has_failed(seat.seat) or self._is_long_enough(seat, opponents):
                    self._seats.set_open(seat.seat, False)
                    seat.is_open = False
            elif seat.is_loading and not self._seats.has_failed(seat.seat):
                # A mixture begins when all of it is there.
                taken = [other for other in opponents.seats if other.player_idx is not None]
                needed = taken if self._roles.weights else [seat]
                if all(self._seats.is_loaded(other.seat) or self._seats.has_failed(other.seat) for other in needed):
                    seat.is_loading, seat.is_open = False, True
                    seat.opened_at = time.monotonic()
                    self._seats.set_open(seat.seat, True)
            elif self._seats.is_idle(seat.seat):
                self._give(seat, opponents, count_matches)

    def note_match(self, policy_id: int, names: Collection[str]) -> float | None:
        """Note that a match of this policy has ended. Returns the probability with which it was to meet the players of
        the pool among these, or None if policies alone have played."""
        met = [self._pool.idx[name] for name in dict.fromkeys(names) if name in self._pool.idx]
        if not met:
            return None
        together, left = 1.0, met.copy()
        for opponents in self._of_policy[policy_id]:  # roles and names are both in the order of the agents
            of_role = [idx for idx in left if self._roles.may_play(self._pool.players[idx], opponents.role)]
            player_idx = (of_role or met)[0]
            left = [idx for idx in left if idx != player_idx]
            opponents.owed[player_idx] -= 1
            opponents.num_matches += 1
            together *= float(opponents.probability[player_idx])
        return together

    def weigh(self) -> None:
        """Weigh the seats by the present probabilities: matches were noted, or players have joined or are gone."""
        for opponents in self._opponents:
            opponents.owed += opponents.num_matches * opponents.probability
            opponents.num_matches = 0
            opponents.owed = np.pad(opponents.owed, (0, len(self._pool.players) - len(opponents.owed)))
            opponents.probability = self._probabilities(opponents)
            self._weigh_seats(opponents)

    def _weigh_seats(self, opponents: _Opponents) -> None:
        if not len(opponents.probability):
            return
        weights = seat_weights(opponents.probability, len(opponents.seats))
        for seat in opponents.seats:
            if seat.player_idx is not None:
                self._seats.weigh(seat.seat, float(weights[seat.player_idx]))

    def _probabilities(self, opponents: _Opponents) -> np.ndarray:
        """Returns the probability of each player, [K], which is 0 if it is gone, or may not play the role."""
        players, role = self._pool.players, opponents.role
        if self._roles.weights:
            chances = np.array([self._roles.weights.get((player.name, role), 0.0) for player in players])
        elif players:
            chances = self._pool.probabilities(opponents.policy_id, self._choice)
        else:
            chances = np.zeros(0)
        chances[[not self._roles.may_play(player, role) for player in players]] = 0.0
        chances[[self._pool.idx[name] for name in self._pool.gone]] = 0.0
        return chances / chances.sum() if chances.any() else chances

    def _is_long_enough(self, seat: _Seat, opponents: _Opponents) -> bool:
        """Returns whether the player has had this seat for long enough: another one is owed more matches."""
        others_play = all(other.is_open for other in opponents.seats)
        needed_s = self._seats.loading_s(seat.seat) * self._seats.num_seats / _LOADING_SHARE
        if not others_play or time.monotonic() - seat.opened_at < needed_s:
            return False
        waiting = self._waiting(opponents)
        owed = opponents.owed
        return waiting.size > 0 and owed[waiting].max() - owed[seat.player_idx] >= _OWED_MATCHES

    def _give(self, seat: _Seat, opponents: _Opponents, count_matches: Callable[[], None]) -> None:
        """Give it to the player without a seat of this policy that is owed the most, if there is one."""
        seat.player_idx = None
        if not self._waiting(opponents).size:
            return
        count_matches()
        waiting = self._waiting(opponents)
        owed = opponents.owed[waiting]
        most_owed = waiting[owed == owed.max()]  # at the start, all
        chances = opponents.probability[most_owed]
        seat.player_idx = int(self._rng.choice(most_owed, p=chances / chances.sum()))
        seat.is_loading = True
        self._weigh_seats(opponents)
        self._seats.give(seat.seat, seat.player_idx, self._pool.players[seat.player_idx].name)
        self._wake.put(0)

    def _waiting(self, opponents: _Opponents) -> np.ndarray:
        """Returns the positions in the pool of players that may be met and have no seat of this policy."""
        may_be_met = opponents.probability > 0
        may_be_met[[seat.player_idx for seat in opponents.seats if seat.player_idx is not None]] = False
        return np.flatnonzero(may_be_met)


def seat_weights(probability: np.ndarray, num_seats: int) -> np.ndarray:
    """Returns how likely each of K players is beside the others that have a seat, [K].

    probability: [K], adds up to 1, or is 0 where no player is left. A player for which one of S seats is too few
    (S p >= 1, of what is left) has its own probability, and is to have a seat always. The others share the remaining
    seats, and all weigh as much in them: tau with sum(min(1, p / tau)) = S. Where each of them is in a seat for p / tau
    of the time, it is met with probability p (sampling with unequal probabilities, Horvitz and Thompson 1952).
    """
    rest = np.cumsum(np.sort(probability))[::-1][:num_seats]  # [min(K, S)] without the 0, 1, 2, ... likeliest
    tau = (rest / (num_seats - np.arange(len(rest)))).min()
    return np.maximum(probability, max(tau, np.finfo(np.float64).tiny))  # of a single seat, never 0 / 0
