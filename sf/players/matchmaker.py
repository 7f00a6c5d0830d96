"""Who of the pool meets the policies of a run. The parent calls it between two reports of its children.

It takes snapshots, gives seats to players, and records the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sf.envs import UsageError
from sf.league import record
from sf.league.record import ExploiterReset, ExploiterRestarted, Match, Player, Reference, policy_name
from sf.metrics.progress import Progress
from sf.players.config import PlayersConfig
from sf.players.earlier_record import EarlierRecord
from sf.players.exploiters import Exploiters
from sf.players.pool import Pool
from sf.players.record_writer import RecordWriter
from sf.players.seat_keeper import SeatKeeper
from sf.players.snapshots import DIRECTORY, Snapshots, beginning_of
from sf.queues import IndexQueue
from sf.recovery import RecoveryMemory
from sf.seats import Seats
from sf.storage.checkpoint import Checkpoint
from sf.storage.match_journal import JournalReader

_WRITES_EVERY_S = 1.0  # what has happened, at most: it waits for the disk
_MATCHES_OF_WORST = 10  # a player counts as the worst from so many matches on


class Matchmaker:
    """All players of a run.

    targets: of exploiters, see `Exploiters`. players: those that are in the pool from the start, by name; of a policy,
    its checkpoint. reference: ratings at which some of them are held; empty: as before. wake: the queue of the player
    worker. order: sends an order to a learner, see `sf.learner.orders`. say: tells the user.
    """

    def __init__(
        self,
        config: PlayersConfig,
        run_dir: Path,
        num_policies: int,
        exploiters: Exploiters,
        players: Mapping[str, Checkpoint | None],
        reference: Mapping[str, float],
        seats: Seats,
        wake: IndexQueue,
        recoveries: Sequence[RecoveryMemory],
        progress: Progress,
        seed: int,
        order: Callable[..., None],
        say: Callable[[str], None],
    ) -> None:
        """Begins the record in the run directory, or goes on with it.

        Raises ValueError where it is damaged, or a player cannot be written there.
        """
        self._config = config
        self._has_fixed_mixture = bool(config.opponent_weights)
        self._run_dir = run_dir
        self._num_policies = num_policies
        self._snapshots = Snapshots(run_dir, recoveries, say)
        self._progress = progress
        self._order = order
        self._say = say
        record_path = run_dir / record.NAME
        self._exploiters = exploiters
        earlier = EarlierRecord(record_path, self._exploiters)
        self._pool = Pool(num_policies, earlier.rows(), reference or earlier.held(players))
        # Policies of which each actor had ended an episode when matches were collected last. Before, short matches end
        # first, so their results decide nothing.
        self._settled: set[int] = set()
        self._to_begin_anew: dict[int, str] = {}  # exploiters that wait for the record, and why they do
        self._journal = JournalReader(run_dir, earlier.journals, say)
        self._record = RecordWriter(record_path, say)
        if reference not in ({}, earlier.reference):
            self._record.add(Reference(reference))
        self._written_at = float("-inf")  # when that was tried last
        self._gone: set[str] = set()  # players that cannot be loaded
        self._num_mains = num_policies - len(exploiters.policy_ids)
        weights = dict(zip(players, config.opponent_weights, strict=True)) if config.opponent_weights else {}
        rng = np.random.default_rng((seed, earlier.num_rows))
        self._keeper = SeatKeeper(
            seats,
            self._num_mains,
            self._pool,
            self._gone,
            weights,
            config.opponent_choice,
            wake,
            rng,
            self._record_all,
        )
        for name, saved in players.items():
            if name not in self._pool.idx:
                try:
                    joining = Player(name) if saved is None else self._snapshots.keep_entrant(name, saved)
                except OSError as error:
                    raise UsageError(
                        f"{run_dir / DIRECTORY} cannot be written ({error.strerror}): name another --train_dir"
                    ) from None
                self._join(joining)

    def act_if_due(self) -> None:
        """Take snapshots, and see to the seats."""
        if not self._progress.has_begun:
            return
        for policy_id in range(self._num_mains):
            if self._is_snapshot_due(policy_id):
                self._take_snapshot(policy_id)
            self._keeper.see_to(policy_id)
        for policy_id in self._exploiters.policy_ids:
            if self._exploiters.is_at_its_end(policy_id, self._progress.policies[policy_id].env_steps):
                self._leave_behind(policy_id)
        if self._to_begin_anew:
            self._let_begin_anew()
        if time.monotonic() - self._written_at >= _WRITES_EVERY_S:
            self.write()

    @property
    def why_over(self) -> str | None:
        """Why the run cannot go on, if so."""
        if not (self._config.waits_for_players and self._gone.issuperset(self._pool.idx)):
            return None
        return (
            "past_share is 1, and no player can be loaded, so there is nobody to train against: mend what the "
            "sentences above name, and resume the run"
        )

    def player_failed(self, name: str, text: str) -> None:
        """It cannot be loaded."""
        if name not in self._gone:
            self._gone.add(name)
            self._keeper.weigh()
            self._say(f"league: {name} cannot be loaded ({text}); others are met in its place")

    def learner_has(self, policy_id: int, weights_event: int) -> None:
        """weights_event: of the weights that a learner begins with, returns to, or has received.

        An exploiter that should have begun anew since does so now. Matches of one that has done so count.
        """
        if policy_id not in self._exploiters.policy_ids:
            return
        if weights_event < self._exploiters.num_beginnings(policy_id):
            self._send_anew(policy_id)
        elif self._exploiters.is_to_begin(policy_id):
            self._progress.policies[policy_id].begin_anew()
            self._settled.discard(policy_id)
            row = ExploiterRestarted(policy_id, self._progress.policies[policy_id].env_steps)
            self._exploiters.add(row)
            self._pool.begin_anew(row)
            self._record.add(row)

    def write(self) -> None:
        """What has happened since the last call, to the record. Where it cannot be written, the next call does it."""
        self._written_at = time.monotonic()
        self._collect_matches()
        if self._record.write():
            self._journal.remove_ended()

    def end(self) -> None:
        """No rollout worker lives any more."""
        self._collect_matches()
        if self._record.write() and self._progress.has_begun:
            self._journal.remove_all()

    def metrics(self) -> dict[str, Any]:
        """For the next record: the size of the pool, and how each policy does against it."""
        metrics: dict[str, Any] = {"league/players": len(self._pool.players)}
        for policy_id in range(self._num_policies):
            prefix = f"{policy_name(policy_id)}/" if self._num_policies > 1 else ""
            rates = self._pool.win_rates(policy_id)
            rating = self._pool.rating(policy_id)
            if rating is not None:
                metrics[f"{prefix}league/rating"] = rating.mean
            if policy_id in self._exploiters.policy_ids:
                metrics[f"{prefix}league/beginnings"] = self._exploiters.num_beginnings(policy_id)
                against_target = self._exploiters.win_rate(policy_id)
                if against_target is not None:
                    metrics[f"{prefix}league/win_rate"] = against_target
            elif rates:
                metrics[f"{prefix}league/win_rate"] = float(np.mean([rate for rate, _ in rates.values()]))
            past = {name: met for name, met in rates.items() if self._player(name).policy == policy_id} or rates
            worst = min(((rate, name) for name, (rate, num) in past.items() if num >= _MATCHES_OF_WORST), default=None)
            if worst is not None:
                rate, name = worst
                metrics[f"{prefix}league/worst_win_rate"] = rate
                env_steps = self._player(name).env_steps
                if env_steps is not None:  # a snapshot: how long ago is what the policy has forgotten?
                    metrics[f"{prefix}league/worst_env_steps"] = env_steps
        return metrics

    # Matches

    def _collect_matches(self) -> None:
        """Those that have ended since the last call. The first call has those that an earlier session left behind."""
        if not self._progress.has_begun:
            return
        num_players = self._num_policies + len(self._pool.players)
        for file, line, played in self._journal.read(self._num_mains, num_players):
            names = tuple(self._name(each) for each in played.who)
            if self._gone.intersection(names):
                continue  # it cannot play, so that says nothing
            learns = sorted({each for each in played.who if each < self._num_policies})
            learning = learns[0]  # no exploiter: each plays with its target
            match = Match(
                names,
                played.scores,
                self._progress.policies[learning].env_steps,
                self._keeper.note_match(learning, names),
                (file, line),
                {policy_name(each): self._progress.policies[each].env_steps for each in learns} if learns[1:] else None,
            )
            self._pool.add(match, self._settled)
            self._exploiters.add(match, self._settled)
            self._record.add(match)
        self._keeper.weigh()
        self._settled = {idx for idx, policy in enumerate(self._progress.policies) if not policy.num_waited_for}

    def _record_all(self) -> bool:
        """Count the matches that have ended, and write all players to the record. Returns whether it has them."""
        self._collect_matches()
        return not self._record.lacks_players or self._record.write()

    # Snapshots

    def _is_snapshot_due(self, policy_id: int) -> bool:
        if not self._config.snapshot_every_env_steps or self._has_fixed_mixture:
            return False
        last = self._pool.last_snapshot[policy_id]
        env_steps, rate = self._progress.policies[policy_id].env_steps, self._config.snapshot_at_win_rate
        if last is None or env_steps - last >= self._config.snapshot_every_env_steps:
            return True
        if self._gone.issuperset(self._pool.idx):  # nobody is left to meet
            return True
        return rate is not None and self._pool.beats_the_pool(policy_id, rate)

    def _take_snapshot(self, policy_id: int) -> bool:
        """Returns whether it could be taken now."""
        snapshot = self._snapshots.take(policy_id, self._pool.last_snapshot[policy_id])
        if snapshot is not None:
            self._join(snapshot)
        return snapshot is not None

    def _join(self, player: Player) -> None:
        self._pool.join(player)
        self._keeper.weigh()
        self._record.add(player)

    # Exploiters

    def _leave_behind(self, policy_id: int) -> None:
        """An exploiter is at its end: a snapshot joins the pool, and it is to begin anew."""
        why = "has won" if self._exploiters.has_won(policy_id) else "has not won in exploiter_env_steps"
        if not self._take_snapshot(policy_id):
            return
        row = ExploiterReset(policy_id, self._progress.policies[policy_id].env_steps)
        self._exploiters.add(row)
        self._record.add(row)
        self._to_begin_anew[policy_id] = why

    def _let_begin_anew(self) -> None:
        """Those of which the record knows: else a run that is killed and resumed would begin anew once less."""
        if not self._record.write():
            return
        for policy_id, why in sorted(self._to_begin_anew.items()):
            self._say(f"league: exploiter {policy_id} {why}: it joins the pool, and begins anew")
            self._send_anew(policy_id)
        self._to_begin_anew.clear()

    def _send_anew(self, policy_id: int) -> None:
        self._progress.policies[policy_id].begin_anew()
        self._order(
            policy_id,
            hyperparameters={},
            copies=None,
            begins_from=str(beginning_of(self._run_dir, policy_id)),
            weights_event=self._exploiters.num_beginnings(policy_id),
        )

    def _player(self, name: str) -> Player:
        return self._pool.players[self._pool.idx[name]]

    def _name(self, who: int) -> str:
        if who < self._num_policies:
            return policy_name(who)
        return self._pool.players[who - self._num_policies].name
