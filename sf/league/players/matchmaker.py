"""Decides which fixed opponents the policies of a run meet. The parent calls it between two reports of its children."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sf.league.players.exploiters import Exploiters
from sf.league.players.league_record import MatchResults
from sf.league.players.pool import Pool
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.players.snapshots import PoolGrowth, beginning_of
from sf.league.record import ExploiterReset, ExploiterRestarted, policy_name
from sf.metrics.progress import Progress
from sf.system.messages import say

_MATCHES_OF_WORST = 10  # a player counts as the worst from so many matches on


@dataclass
class ExploiterResets:
    """Resets exploiters at their end: a snapshot joins the pool, and the learner returns to its first weights."""

    exploiters: Exploiters
    growth: PoolGrowth
    results: MatchResults
    progress: Progress
    run_dir: Path
    order: Callable[..., None]
    _reasons: dict[int, str] = field(default_factory=dict)  # why exploiters that wait for the record are reset

    def act_if_due(self) -> None:
        for policy_id in self.exploiters.policy_ids:
            env_steps = self.progress.policies[policy_id].env_steps
            if self.exploiters.is_at_its_end(policy_id, env_steps):
                why = "has won" if self.exploiters.has_won(policy_id) else "has not won in exploiter_env_steps"
                if self.growth.take_snapshot(policy_id):
                    self.results.add(ExploiterReset(policy_id, env_steps))
                    self._reasons[policy_id] = why
        # The record is first, or a run that is killed and resumed would reset it once less.
        if self._reasons and self.results.record.write():
            for policy_id, why in sorted(self._reasons.items()):
                say(f"league: exploiter {policy_id} {why}: it joins the pool, and begins anew")
                self._send(policy_id)
            self._reasons.clear()

    def learner_has(self, policy_id: int, weights_event: int) -> None:
        """Send a reset again that the learner has missed, or note that it has carried it out: then its matches count.

        weights_event: of the weights that a learner begins with, returns to, or has received.
        """
        if policy_id not in self.exploiters.policy_ids:
            return
        if weights_event < self.exploiters.num_beginnings(policy_id):
            self._send(policy_id)
        elif self.exploiters.is_to_begin(policy_id):
            self.progress.policies[policy_id].begin_anew()
            self.results.add(ExploiterRestarted(policy_id, self.progress.policies[policy_id].env_steps))

    def _send(self, policy_id: int) -> None:
        self.progress.policies[policy_id].begin_anew()
        self.order(
            policy_id,
            hyperparameters={},
            copies=None,
            begins_from=str(beginning_of(self.run_dir, policy_id)),
            weights_event=self.exploiters.num_beginnings(policy_id),
        )


@dataclass(frozen=True)
class Matchmaker:
    """Lets the parts of a league act in their order. waits_for_players: a match waits until somebody sits in a seat."""

    pool: Pool
    exploiters: Exploiters
    keeper: SeatKeeper
    results: MatchResults
    growth: PoolGrowth
    resets: ExploiterResets
    progress: Progress
    waits_for_players: bool

    def act_if_due(self) -> None:
        """Take snapshots, see to the seats, reset exploiters, and write the record."""
        if not self.progress.has_begun:
            return
        for policy_id in range(self.keeper.num_policies):
            if self.growth.is_snapshot_due(policy_id):
                self.growth.take_snapshot(policy_id)
            self.keeper.see_to(policy_id, self.results.count)
        self.resets.act_if_due()
        self.results.write_if_due()

    @property
    def why_over(self) -> str | None:
        """The reason why the run cannot go on, or None."""
        if not (self.waits_for_players and self.keeper.is_anybody_missing):
            return None
        return (
            "past_share is 1, and no player can be loaded, so there is nobody to train against: fix what the "
            "sentences above name, and resume the run"
        )

    def player_failed(self, name: str, text: str) -> None:
        """Leave out a player that cannot be loaded."""
        if name not in self.pool.gone:
            self.pool.gone.add(name)
            self.keeper.weigh()
            say(f"league: {name} cannot be loaded ({text}); others are met in its place")

    def learner_has(self, policy_id: int, weights_event: int) -> None:
        """Note which weights a learner has: see `ExploiterResets`."""
        self.resets.learner_has(policy_id, weights_event)

    def write(self) -> None:
        """Write what has happened to the record, for the last time once no rollout worker lives any more."""
        self.results.write()

    def metrics(self) -> dict[str, Any]:
        """Returns the size of the pool, and how each policy does against it, for the next record."""
        pool, exploiters = self.pool, self.exploiters
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
