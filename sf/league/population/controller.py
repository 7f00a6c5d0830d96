"""Evolves a running population. The parent calls it between two reports of its children."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sf.config import Config
from sf.config.roles import populations, roles_of
from sf.config.schedules import ENV, parse
from sf.envs import EnvSpec
from sf.evaluation.statistics import rate_statistics, statistics
from sf.league.population.evolution import RANGES, SHAPING, Member, evolve
from sf.league.population.record import PopulationRecord
from sf.metrics.progress import Progress
from sf.shared.scheduled import Scheduled
from sf.storage.run_dir import RunDir
from sf.system.arrays import SharedArrays
from sf.system.messages import say

Order = Callable[..., None]
"""Called with the policy id and the fields of an order: see `Orders` in sf.learner.orders."""


class Population:
    """All policies of a run with population-based training.

    progress: has the objectives. order: sends an order to a learner. shaping: `weights` [P, K] of shaped rewards by
    policy, which rollout workers read when an episode begins. scheduled: has the options that evolve.
    """

    def __init__(
        self,
        config: Config,
        spec: EnvSpec,
        run_dir: RunDir,
        progress: Progress,
        order: Order,
        shaping: SharedArrays | None,
        scheduled: Scheduled | None = None,
    ) -> None:
        """Begins the record in the run directory, or goes on with it. Raises ValueError where it is damaged."""
        self._rules = config.population
        self._seed = config.run.seed
        self._progress = progress
        self._shaping, self._scheduled = shaping, scheduled
        self._declared = {ENV + name: ends for name, ends in spec.schedulable.items()}
        self._shaping_names = list(spec.shaping)
        self._order = order
        roles = roles_of(config.population, spec, config.run.env)
        self._populations = populations(roles, config.population.num_policies)
        self._is_failing = False
        self._initial = initial_hyperparameters(config, spec)
        self._record = PopulationRecord(run_dir.path, self._initial)
        self._generation: int | None = None  # the last one; None: before all learners have begun
        for policy_id in self._record.policies:
            self._tell_rollout_workers(policy_id)

    def hyperparameters_of_learner(self, policy_id: int) -> dict[str, float]:
        """The present hyperparameters of a policy that are fields of LearnerConfig."""
        of_policy = self._hyperparameters(policy_id)
        return {name: value for name, value in of_policy.items() if not name.startswith((SHAPING, ENV))}

    def learner_has(self, policy_id: int, weights_event: int) -> None:
        """Send weights that the learner lacks again. weights_event: of those that it begins with or returns to."""
        history = self._record.policies[policy_id]
        if weights_event < history.weights_event and history.ancestors:
            self._send(policy_id, copies=history.ancestors[0].policy_id)

    def evolve_if_due(self) -> None:
        """One generation, if the policies have trained for long enough since the last one."""
        if not self._progress.has_begun:
            return
        due = self._rules.generation_at(min(policy.env_steps for policy in self._progress.policies))
        if self._generation is None:
            self._generation = due  # earlier parts of the run have carried out what was due in them
        if due > self._generation and self._evolve(due):
            self._generation = due

    def _evolve(self, generation: int) -> bool:
        """Returns whether the generation could be recorded. If not, nothing changes, and the caller tries again."""
        target = self._rules.pbt_target_objective
        members = [
            _member(policy_id, policy.objective_values(target), self._hyperparameters(policy_id))
            for policy_id, policy in zip(sorted(self._initial), self._progress.policies, strict=True)
        ]
        rng = np.random.default_rng((self._seed, generation))
        decisions = [
            decision
            for policies in self._populations
            for decision in evolve([members[policy_id] for policy_id in policies], self._rules, rng, self._declared)
        ]
        env_steps = {policy_id: policy.env_steps for policy_id, policy in enumerate(self._progress.policies)}
        try:
            sentences = self._record.add(decisions, members, env_steps)
        except OSError as error:
            if not self._is_failing:
                say(f"population: a generation waits until it can be recorded ({error})")
            self._is_failing = True
            return False
        self._is_failing = False
        for sentence in sentences:
            say(f"population: {sentence}")
        for decision in decisions:
            self._tell_rollout_workers(decision.policy_id)
            self._send(decision.policy_id, copies=decision.copies)
            if decision.copies is not None:
                self._progress.policies[decision.policy_id].begin_anew()
        return True

    def _send(self, policy_id: int, copies: int | None) -> None:
        self._order(
            policy_id,
            hyperparameters=self.hyperparameters_of_learner(policy_id),
            copies=copies,
            weights_event=self._record.policies[policy_id].weights_event,
        )

    def _hyperparameters(self, policy_id: int) -> Mapping[str, float]:
        """As they are recorded. What the record does not have, as a shaped reward that is new, is as at the start; what
        the run has no more is left out."""
        recorded = self._record.policies[policy_id].hyperparameters
        return {name: recorded.get(name, value) for name, value in self._initial[policy_id].items()}

    def _tell_rollout_workers(self, policy_id: int) -> None:
        of_policy = self._hyperparameters(policy_id)
        if self._shaping is not None:
            self._shaping["weights"][policy_id] = [of_policy[SHAPING + name] for name in self._shaping_names]
        if self._scheduled is not None:
            self._scheduled.evolve(policy_id, {name: of_policy[name] for name in of_policy if name.startswith(ENV)})


def _member(policy_id: int, values: Sequence[float], hyperparameters: Mapping[str, float]) -> Member:
    """values: of the objective in its episodes."""
    if not values:
        return Member(policy_id, None, hyperparameters)
    are_results = {*values} <= {0.0, 0.5, 1.0}  # of matches: a win, a draw, a defeat
    found = (rate_statistics if are_results else statistics)(values, range(len(values)))
    interval = None if found.low is None or found.high is None else (found.low, found.high)
    return Member(policy_id, found.mean, hyperparameters, interval)


def initial_hyperparameters(config: Config, spec: EnvSpec) -> dict[int, Mapping[str, float]]:
    """The hyperparameters at the start, by policy id: those of the flags, with learning rates spread if asked for. What
    `anneal` changes is none."""
    num_policies, decades = config.population.num_policies, config.population.pbt_initial_lr_decades
    flags: dict[str, Any] = config.flat()
    annealed = {schedule.name for schedule in parse(config.run.anneal)}
    common = {name: float(flags[name]) for name in RANGES if name != SHAPING and name not in annealed}
    common |= {SHAPING + name: weight for name, weight in spec.shaping.items()}
    options = config.environment.option_ranges
    common |= {ENV + name: float(options[name][0]) for name in config.population.pbt_optimize_options}
    factors = np.logspace(-decades / 2, decades / 2, num_policies)
    return {
        policy_id: {name: value * float(factor) if name == "learning_rate" else value for name, value in common.items()}
        for policy_id, factor in enumerate(factors)
    }
