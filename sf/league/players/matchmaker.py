"""Decides which fixed opponents the policies of a run meet. The parent calls it between two reports of its children."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sf.league.players.exploiter_resets import ExploiterResets
from sf.league.players.exploiters import Exploiters
from sf.league.players.match_results import MatchResults
from sf.league.players.pool import Pool
from sf.league.players.pool_growth import PoolGrowth
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.record import policy_name
from sf.metrics.progress import Progress

_MATCHES_OF_WORST = 10  # a player counts as the worst from so many matches on


@dataclass(frozen=True)
class Matchmaker:
    """Lets the parts of a league act in their order. `sf.run.controllers` makes them.

    waits_for_players: whether a match waits until somebody sits in a seat. say: tells the user.
    """

    pool: Pool
    exploiters: Exploiters
    keeper: SeatKeeper
    results: MatchResults
    growth: PoolGrowth
    resets: ExploiterResets
    progress: Progress
    waits_for_players: bool
    say: Callable[[str], None]

    def act_if_due(self) -> None:
        """Take snapshots, see to the seats, reset exploiters, and write the record."""
        if not self.progress.has_begun:
            return
        for policy_id in range(self.keeper.num_policies):
            self.growth.take_snapshot_if_due(policy_id)
            self.keeper.see_to(policy_id, self.results.write_players)
        self.resets.act_if_due()
        self.results.write_if_due()

    @property
    def why_over(self) -> str | None:
        """The reason why the run cannot go on, or None."""
        if not (self.waits_for_players and self.pool.is_gone):
            return None
        return (
            "past_share is 1, and no player can be loaded, so there is nobody to train against: mend what the "
            "sentences above name, and resume the run"
        )

    def player_failed(self, name: str, text: str) -> None:
        """Leave out a player that cannot be loaded."""
        if name not in self.pool.gone:
            self.pool.gone.add(name)
            self.keeper.weigh()
            self.say(f"league: {name} cannot be loaded ({text}); others are met in its place")

    def learner_has(self, policy_id: int, weights_event: int) -> None:
        """Note which weights a learner has: see `ExploiterResets`."""
        self.resets.learner_has(policy_id, weights_event)

    def write(self) -> None:
        """Write what has happened to the record."""
        self.results.write()

    def end(self) -> None:
        """Write the last results once no rollout worker lives any more."""
        self.results.end()

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the league for the next record."""
        return _metrics(self.pool, self.exploiters)


def _metrics(pool: Pool, exploiters: Exploiters) -> dict[str, Any]:
    """Returns the size of the pool, and how each policy does against it."""
    metrics: dict[str, Any] = {"league/players": len(pool.players)}
    for policy_id in range(pool.num_policies):
        prefix = f"{policy_name(policy_id)}/" if pool.num_policies > 1 else ""
        rates = pool.win_rates(policy_id)
        rating = pool.rating(policy_id)
        if rating is not None:
            metrics[f"{prefix}league/rating"] = rating.mean
        if policy_id in exploiters.policy_ids:
            metrics[f"{prefix}league/beginnings"] = exploiters.num_beginnings(policy_id)
            against_target = exploiters.win_rate(policy_id)
            if against_target is not None:
                metrics[f"{prefix}league/win_rate"] = against_target
        elif rates:
            metrics[f"{prefix}league/win_rate"] = float(np.mean([rate for rate, _ in rates.values()]))
        past = {name: met for name, met in rates.items() if pool.player(name).policy == policy_id} or rates
        worst = min(((rate, name) for name, (rate, num) in past.items() if num >= _MATCHES_OF_WORST), default=None)
        if worst is not None:
            rate, name = worst
            metrics[f"{prefix}league/worst_win_rate"] = rate
            env_steps = pool.player(name).env_steps
            if env_steps is not None:  # a snapshot: how long ago is what the policy has forgotten?
                metrics[f"{prefix}league/worst_env_steps"] = env_steps
    return metrics
