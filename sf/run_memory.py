"""All shared memory of a run: allocated once by the parent, and the part of it that each process gets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from sf.channels import Channels
from sf.counters import CounterRow, Counters
from sf.learner.worker import LearnerArgs
from sf.plan import Plan
from sf.policy.worker import PolicyWorkerArgs
from sf.policy_memory import PolicyMemorySpec
from sf.recovery import RecoveryMemory
from sf.rollout.worker import RolloutWorkerArgs
from sf.slots import SlotPool
from sf.stopping import StopFlag

_BYTES_PER_WEIGHT_IN_CHECKPOINT = 3 * 8  # the weight and two moments, if all were float64
_REST_OF_CHECKPOINT = 1 << 20  # header, random numbers, counters


@dataclass(frozen=True)
class RunMemory:
    """The memory, and the arguments of every process."""

    plan: Plan
    checkpoints: Path
    pool: SlotPool
    channels: Channels
    policy: PolicyMemorySpec
    counters: Counters
    recovery: RecoveryMemory
    stop: StopFlag
    started_at: float

    @classmethod
    def allocate(cls, plan: Plan, checkpoints: Path) -> RunMemory:
        sampler = plan.config.sampler
        num_processes = plan.num_workers + sampler.policy_workers_per_policy + 1
        return cls(
            plan=plan,
            checkpoints=checkpoints.absolute(),
            pool=SlotPool.allocate(
                plan.spec,
                sampler.rollout,
                num_workers=plan.num_workers,
                groups_per_worker=sampler.worker_num_splits,
                slots_per_group=plan.slots_per_group,
                actors_per_group=plan.actors_per_group,
            ),
            channels=Channels.allocate(
                num_workers=plan.num_workers,
                groups_per_worker=sampler.worker_num_splits,
                actors_per_group=plan.actors_per_group,
                num_policy_workers=sampler.policy_workers_per_policy,
            ),
            policy=PolicyMemorySpec.allocate(
                plan.device, plan.num_weights, plan.state_size, plan.num_actors, plan.num_slots
            ),
            counters=Counters.allocate(num_processes),
            recovery=RecoveryMemory(_BYTES_PER_WEIGHT_IN_CHECKPOINT * plan.num_weights + _REST_OF_CHECKPOINT),
            stop=StopFlag(),
            started_at=time.time(),
        )

    @property
    def counter_rows(self) -> dict[str, list[int]]:
        """Rows of the counters by role."""
        num_workers, num_policy_workers = self.plan.num_workers, len(self.channels.requests)
        return {
            "rollout": list(range(num_workers)),
            "policy": list(range(num_workers, num_workers + num_policy_workers)),
            "learner": [num_workers + num_policy_workers],
        }

    def counter_row(self, role: str, idx: int) -> CounterRow:
        return self.counters.row(self.counter_rows[role][idx])

    def rollout_worker_args(self, idx: int, seed_key: tuple[int, ...]) -> RolloutWorkerArgs:
        """seed_key: differs from one start of this worker to the next, () at the first of a run."""
        plan, config = self.plan, self.plan.config
        return RolloutWorkerArgs(
            env=config.run.env,
            options=config.environment,
            num_envs_per_group=config.sampler.num_envs_per_group,
            rollout=config.sampler.rollout,
            seed=config.run.seed,
            seed_key=seed_key,
            core=plan.core_of(idx),
            slots=self.pool.of_worker(idx),
            channel=self.channels.of_worker(idx),
            counters=self.counter_row("rollout", idx),
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
            memory=self.policy,
            learner=learner,
            rows=self.pool.arrays,
            channel=self.channels.of_policy_worker(idx),
            counters=self.counter_row("policy", idx),
        )

    def learner_args(self, readers: Connection, goes_on_at: int | None) -> LearnerArgs:
        plan = self.plan
        return LearnerArgs(
            config=plan.config,
            spec=plan.spec,
            num_actors=plan.num_actors,
            bfloat16=plan.bfloat16,
            num_threads=plan.learner_threads,
            memory=self.policy,
            readers=readers,
            slots=self.pool.of_learner(),
            counters=self.counter_row("learner", 0),
            checkpoints=self.checkpoints,
            recovery=self.recovery,
            goes_on_at=goes_on_at,
            started_at=self.started_at,
            stop=self.stop,
        )
