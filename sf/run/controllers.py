"""The controllers of a run decide between two reports of its children: evolution, matches, evaluations, tasks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from sf.evaluation.during_training import EvaluatorOrders
from sf.evaluation.evaluator import EVALUATE, EXPLOIT, FILM
from sf.league.players.exploiters import Exploiters
from sf.league.players.league_record import LeagueRecord, MatchResults
from sf.league.players.matchmaker import ExploiterResets, Matchmaker
from sf.league.players.pool import Pool
from sf.league.players.seat_keeper import SeatKeeper
from sf.league.players.snapshots import PoolGrowth, Snapshots
from sf.league.population.controller import Population
from sf.metrics.progress import Progress
from sf.run.learner_orders import LearnerOrders
from sf.run.memory import RunMemory
from sf.run.tasks.choice import TaskChoice
from sf.storage.checkpoint import Checkpoint


class Controllers:
    """Holds the controllers of a run, or None for each that it does not have."""

    def __init__(
        self, memory: RunMemory, learner_orders: LearnerOrders, resumed_steps: int, progress: Progress
    ) -> None:
        """resumed_steps: of earlier parts of the run. Raises ValueError if a record of decisions is damaged."""
        plan, order = memory.plan, learner_orders.order
        evaluation = plan.config.evaluation
        every_env_steps = {
            EVALUATE: evaluation.eval_every_env_steps,
            FILM: evaluation.video_every_env_steps,
            EXPLOIT: evaluation.exploitability_every_env_steps,
        }
        self._progress = progress
        self.orders = EvaluatorOrders(every_env_steps, resumed_steps, memory.evaluations, progress)
        self.population: Population | None = None
        if plan.config.population.with_pbt:
            self.population = Population(
                plan.config, plan.spec, memory.run_dir, progress, order, memory.shaping, memory.scheduled
            )
            learner_orders.hyperparameters = self.population.hyperparameters_of_learner
        self.task_choice: TaskChoice | None = None
        if memory.tasks is not None and plan.config.sampler.task_choice == "progress":
            self.task_choice = TaskChoice(memory.tasks, plan.spec.tasks)
        self.matchmaker = make_matchmaker(memory, progress, order) if memory.seats is not None else None
        self._scheduled = memory.scheduled
        self._judge_if_final()

    def act_if_due(self) -> None:
        """Let each controller do what is due."""
        self.orders.give_if_due()
        self._judge_if_final()
        if self.population is not None:
            self.population.evolve_if_due()
        if self.task_choice is not None:
            self.task_choice.choose_if_due()
        if self.matchmaker is not None:
            self.matchmaker.act_if_due()

    def _judge_if_final(self) -> None:
        """Judge policies by episodes from when on these begin with the last options of the environment."""
        if self._scheduled is None:
            return
        for policy_id, policy in enumerate(self._progress.policies):
            if not self._scheduled.has_final_options(policy_id):
                policy.judged_since = math.inf
            elif policy.judged_since == math.inf:
                policy.judged_since = time.monotonic()

    @property
    def why_over(self) -> str | None:
        """The reason why the run cannot go on, or None."""
        return None if self.matchmaker is None else self.matchmaker.why_over

    def before_record(self) -> None:
        """Write down what has happened, and add to the metrics of the next record."""
        if self.matchmaker is not None:
            self.matchmaker.write()
            self._progress.add_to_record(self.matchmaker.metrics())

    def end(self) -> None:
        """Finish once no child lives any more."""
        self.orders.end()
        if self.matchmaker is not None:
            self.matchmaker.write()


def make_matchmaker(memory: RunMemory, progress: Progress, order: Callable[..., None]) -> Matchmaker:
    """Begin the league in the run directory, or go on with it. Raises ValueError if its record is damaged."""
    plan, seats, run_dir = memory.plan, memory.seats, memory.run_dir.path
    assert seats is not None
    config = plan.config.players
    players = {name: entrant if isinstance(entrant, Checkpoint) else None for name, entrant in plan.entrants.items()}
    exploiters = Exploiters(plan.targets, config.exploiter_win_rate, config.exploiter_env_steps)
    record = LeagueRecord(run_dir)
    held = record.held(plan.reference, players)
    pool = Pool(plan.num_policies, record.earlier_rows(exploiters), held)
    wake = memory.channels.requests[memory.channels.player_worker_idx]
    rng = np.random.default_rng((plan.config.run.seed, record.num_earlier_rows))
    keeper = SeatKeeper(seats, pool, plan.pool_roles, config.opponent_choice, wake, rng)
    results = MatchResults(pool, exploiters, keeper, record, progress)
    growth = PoolGrowth(config, pool, keeper, record, Snapshots(run_dir, memory.recoveries), progress)
    growth.add_named(players)
    resets = ExploiterResets(exploiters, growth, results, progress, run_dir, order)
    waits = config.waits_for_players
    return Matchmaker(pool, exploiters, keeper, results, growth, resets, progress, waits)
