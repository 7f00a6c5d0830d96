"""What the parent decides between two reports of its children: evolution, who meets whom, what is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sf.evaluation.during_training import EvaluatorOrders
from sf.evaluation.evaluator import EVALUATE, EXPLOIT, FILM
from sf.metrics.progress import Progress
from sf.players.exploiters import Exploiters
from sf.players.matchmaker import Matchmaker
from sf.population.controller import Population
from sf.run.children.starter import Starter
from sf.run.memory import RunMemory
from sf.storage.checkpoint import Checkpoint


class Decisions:
    """Those who decide. What a run has none of is None.

    orders: to the evaluator. population: with population-based training. matchmaker: with players that do not learn.
    """

    def __init__(self, memory: RunMemory, starter: Starter, progress: Progress, say: Callable[[str], None]) -> None:
        """say: tells the user. Raises ValueError where a record of earlier decisions is damaged."""
        self._memory = memory
        self._starter = starter
        self._progress = progress
        self._say = say
        self.orders = self._make_orders()
        self.population = self._make_population() if memory.plan.config.population.with_pbt else None
        self.matchmaker = None if memory.seats is None else self._make_matchmaker()

    def act_if_due(self) -> None:
        self.orders.give_if_due()
        if self.population is not None:
            self.population.evolve_if_due()
        if self.matchmaker is not None:
            self.matchmaker.act_if_due()

    @property
    def why_over(self) -> str | None:
        """Why the run cannot go on, if so."""
        return None if self.matchmaker is None else self.matchmaker.why_over

    def before_record(self) -> None:
        """Write down what has happened, and give the next record its metrics."""
        if self.matchmaker is not None:
            self.matchmaker.write()
            self._progress.add_to_record(self.matchmaker.metrics())

    def end(self) -> None:
        """No child lives any more."""
        self.orders.end()
        if self.matchmaker is not None:
            self.matchmaker.end()

    def _make_orders(self) -> EvaluatorOrders:
        config = self._memory.plan.config.evaluation
        return EvaluatorOrders(
            {
                EVALUATE: config.eval_every_env_steps,
                FILM: config.video_every_env_steps,
                EXPLOIT: config.exploitability_every_env_steps,
            },
            sum(self._starter.resumed_steps),
            self._memory.evaluations,
            self._progress,
            self._say,
        )

    def _make_population(self) -> Population:
        plan = self._memory.plan
        population = Population(
            plan.config,
            plan.spec,
            self._memory.run_dir,
            self._progress,
            self._memory.shaping,
            self._order,
            self._say,
        )
        self._starter.hyperparameters = population.hyperparameters_of_learner
        return population

    def _make_matchmaker(self) -> Matchmaker:
        memory, plan = self._memory, self._memory.plan
        assert memory.seats is not None
        return Matchmaker(
            plan.config.players,
            memory.run_dir.path,
            plan.num_policies,
            Exploiters(
                plan.targets,
                plan.config.players.exploiter_win_rate,
                plan.config.players.exploiter_env_steps,
            ),
            {name: entrant if isinstance(entrant, Checkpoint) else None for name, entrant in plan.entrants.items()},
            plan.reference,
            memory.seats,
            memory.channels.requests[memory.channels.player_worker_idx],
            memory.recoveries,
            self._progress,
            plan.config.run.seed,
            self._order,
            self._say,
        )

    def _order(self, policy_id: int, **order: Any) -> None:
        """Tell the learner of a policy, and whoever watches, what was decided."""
        self._progress.policies[policy_id].note_order(order["copies"], begins_anew="begins_from" in order)
        self._starter.links.order(policy_id, **order)
