"""The controllers of a run decide between two reports of its children: evolution, matches, evaluations."""

from __future__ import annotations

from collections.abc import Callable

from sf.evaluation.evaluator import EVALUATE, EXPLOIT, FILM
from sf.metrics.progress import Progress
from sf.players.exploiters import Exploiters
from sf.players.matchmaker import Matchmaker
from sf.population.controller import Population
from sf.run.evaluations.orders import EvaluatorOrders
from sf.run.learner_orders import LearnerOrders
from sf.run.memory import RunMemory
from sf.storage.checkpoint import Checkpoint


class Controllers:
    """Holds the controllers of a run. One that the run does not have is None.

    orders: sends orders to the evaluator. population: evolves the policies. matchmaker: chooses fixed opponents.
    """

    def __init__(
        self,
        memory: RunMemory,
        learner_orders: LearnerOrders,
        resumed_steps: int,
        progress: Progress,
        say: Callable[[str], None],
    ) -> None:
        """resumed_steps: env steps of earlier parts of the run. say: tells the user.

        Raises ValueError if a record of earlier decisions is damaged.
        """
        self._memory = memory
        self._learner_orders = learner_orders
        self._resumed_steps = resumed_steps
        self._progress = progress
        self._say = say
        self.orders = self._make_orders()
        self.population = self._make_population() if memory.plan.config.population.with_pbt else None
        self.matchmaker = None if memory.seats is None else self._make_matchmaker()

    def act_if_due(self) -> None:
        """Let each controller do what is due."""
        self.orders.give_if_due()
        if self.population is not None:
            self.population.evolve_if_due()
        if self.matchmaker is not None:
            self.matchmaker.act_if_due()

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
            self.matchmaker.end()

    def _make_orders(self) -> EvaluatorOrders:
        config = self._memory.plan.config.evaluation
        return EvaluatorOrders(
            {
                EVALUATE: config.eval_every_env_steps,
                FILM: config.video_every_env_steps,
                EXPLOIT: config.exploitability_every_env_steps,
            },
            self._resumed_steps,
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
            self._learner_orders.order,
            self._say,
        )
        self._learner_orders.hyperparameters = population.hyperparameters_of_learner
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
            self._learner_orders.order,
            self._say,
        )
