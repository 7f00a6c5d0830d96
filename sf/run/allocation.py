"""All shared memory of a run: allocated once by the parent, and the part of it that each process gets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from sf.arrays import Field, SharedArrays
from sf.counters import CounterRow, Counters
from sf.evaluation.evaluator import EvaluatorArgs
from sf.learner.args import LearnerArgs
from sf.learner.end_of_run import EndOfRun
from sf.machine.pinned_cores import PinnedCores
from sf.policy.worker import PolicyWorkerArgs
from sf.processes.stopping import StopFlag
from sf.queues import IndexQueue
from sf.recovery import RecoveryMemory
from sf.requests import Channels
from sf.rollout.assignment import AssignmentRules
from sf.rollout.worker import RolloutWorkerArgs
from sf.run.plan import Plan
from sf.slots import SlotPool
from sf.storage.run_dir import RunDir
from sf.weights import SharedWeightsSpec

_BYTES_PER_WEIGHT_IN_CHECKPOINT = 3 * 8  # the weight and two moments, if all were float64
_REST_OF_CHECKPOINT = 1 << 20  # header, random numbers, counters


@dataclass(frozen=True)
class RunMemory:
    """The memory, and the arguments of every process."""

    plan: Plan
    run_dir: RunDir
    pool: SlotPool
    channels: Channels
    policies: tuple[SharedWeightsSpec, ...]
    counters: Counters
    pinned: PinnedCores  # the rollout workers
    recoveries: tuple[RecoveryMemory, ...]  # one a policy
    shaping: SharedArrays | None  # `weights` [P, K] of shaped rewards by policy, where the environment has any
    evaluations: IndexQueue | None  # orders to the evaluator, where there is one
    stop: StopFlag
    started_at: float

    @classmethod
    def allocate(cls, plan: Plan, run_dir: RunDir) -> RunMemory:
        sampler = plan.config.sampler
        policy_ids = range(plan.num_policies)
        shaping = None
        if plan.spec.shaping:
            shaping = SharedArrays([Field("weights", (plan.num_policies, len(plan.spec.shaping)), np.float32)])
            shaping["weights"][:] = list(plan.spec.shaping.values())
        return cls(
            plan=plan,
            run_dir=RunDir(run_dir.path.absolute()),
            pool=SlotPool.allocate(
                plan.spec,
                sampler.rollout,
                num_workers=plan.num_workers,
                groups_per_worker=sampler.worker_num_splits,
                slots_per_group=plan.slots_per_group,
                actors_per_group=plan.actors_per_group,
                num_policies=plan.num_policies,
            ),
            channels=Channels.allocate(
                num_workers=plan.num_workers,
                groups_per_worker=sampler.worker_num_splits,
                actors_per_group=plan.actors_per_group,
                policy_workers_per_policy=sampler.policy_workers_per_policy,
                num_policies=plan.num_policies,
            ),
            policies=tuple(
                SharedWeightsSpec.allocate(
                    plan.device_of(policy_id), plan.num_weights, plan.state_size, plan.num_actors, plan.num_slots
                )
                for policy_id in policy_ids
            ),
            counters=Counters.allocate(
                plan.num_workers + plan.num_policy_workers + plan.num_policies + plan.num_evaluators
            ),
            pinned=plan.pin_workers(),
            recoveries=tuple(
                RecoveryMemory(_BYTES_PER_WEIGHT_IN_CHECKPOINT * plan.num_weights + _REST_OF_CHECKPOINT)
                for _ in policy_ids
            ),
            shaping=shaping,
            evaluations=IndexQueue(1) if plan.num_evaluators else None,
            stop=StopFlag(),
            started_at=time.time(),
        )

    @property
    def counter_rows(self) -> dict[str, list[int]]:
        """Rows of the counters by role."""
        first_policy = self.plan.num_workers
        first_learner = first_policy + self.plan.num_policy_workers
        first_evaluator = first_learner + self.plan.num_policies
        rows = {
            "rollout": list(range(first_policy)),
            "policy": list(range(first_policy, first_learner)),
            "learner": list(range(first_learner, first_evaluator)),
        }
        return {**rows, "evaluator": [first_evaluator]} if self.plan.num_evaluators else rows

    def checkpoints_of(self, policy_id: int) -> Path:
        return self.run_dir.checkpoints_of(policy_id, self.plan.num_policies)

    def counter_row(self, role: str, idx: int) -> CounterRow:
        return self.counters.row(self.counter_rows[role][idx])

    def rollout_worker_args(self, idx: int, seed_key: tuple[int, ...], is_first_start: bool) -> RolloutWorkerArgs:
        """seed_key: differs from one start of this worker to the next, () at the first of a run."""
        plan, config = self.plan, self.plan.config
        return RolloutWorkerArgs(
            env=config.run.env,
            options=config.environment,
            num_envs_per_group=config.sampler.num_envs_per_group,
            rollout=config.sampler.rollout,
            seed=config.run.seed,
            seed_key=seed_key,
            is_first_start=is_first_start,
            core=self.pinned.of(idx),
            slots=self.pool.of_worker(idx),
            channel=self.channels.of_worker(idx),
            counters=self.counter_row("rollout", idx),
            assignment=AssignmentRules(
                num_policies=plan.num_policies,
                mixed=config.population.pbt_mix_policies_in_one_env,
                num_agents=plan.spec.num_agents,
                rollouts_per_draw=config.population.pbt_rollouts_per_draw,
            ),
            shaping=self.shaping,
        )

    def policy_worker_args(self, idx: int, learner: Connection) -> PolicyWorkerArgs:
        plan, config = self.plan, self.plan.config
        return PolicyWorkerArgs(
            spec=plan.spec,
            model=config.model,
            bfloat16=plan.bfloat16,
            synchronous=not config.sampler.async_rl,
            num_threads=plan.policy_threads,
            seed=config.run.seed,
            idx=idx,
            rollout=config.sampler.rollout,
            weights=self.policies[self.channels.policy_of(idx)],
            learner=learner,
            rows=self.pool.arrays,
            channel=self.channels.of_policy_worker(idx),
            counters=self.counter_row("policy", idx),
        )

    def learner_args(
        self,
        policy_id: int,
        readers: Connection,
        orders: Connection,
        hyperparameters: Mapping[str, float],
        goes_on_at: int | None,
        others_before: int = 0,
    ) -> LearnerArgs:
        """others_before: env steps of the other policies in earlier parts of the run."""
        plan, run = self.plan, self.plan.config.run
        others = [idx for idx in range(plan.num_policies) if idx != policy_id]
        is_alone = plan.num_policies == 1
        return LearnerArgs(
            config=plan.config,
            policy_id=policy_id,
            spec=plan.spec,
            num_actors=plan.num_actors,
            bfloat16=plan.bfloat16,
            num_threads=plan.learner_threads,
            weights=self.policies[policy_id],
            policy_workers=readers,
            slots=self.pool.of_learner(policy_id),
            counters=self.counter_row("learner", policy_id),
            checkpoints=self.checkpoints_of(policy_id),
            milestones=self.run_dir.milestones_of(policy_id, plan.num_policies),
            target_env_steps=plan.target_env_steps if is_alone else None,
            end=EndOfRun(
                env_steps=plan.target_env_steps if run.ends_by_steps else None,
                seconds=run.train_for_seconds if run.ends_by_seconds else None,
                others=[self.counter_row("learner", idx) for idx in others],
                others_before=others_before,
            ),
            recoveries=self.recoveries,
            orders=orders,
            hyperparameters=dict(hyperparameters),
            predecessor_env_steps=goes_on_at,
            started_at=self.started_at,
            stop=self.stop,
        )

    def evaluator_args(self) -> EvaluatorArgs:
        assert self.evaluations is not None
        return EvaluatorArgs(
            config=self.plan.config,
            num_agents=self.plan.spec.num_agents,
            recoveries=self.recoveries,
            checkpoints=[self.checkpoints_of(policy_id) for policy_id in range(self.plan.num_policies)],
            orders=self.evaluations,
            counters=self.counter_row("evaluator", 0),
        )
