"""All shared memory of a run, allocated once by the parent. `sf.run.children` says which part each process gets."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sf.envs.tasks.united import FoundTasks
from sf.run.plan import Plan, PolicyNetwork
from sf.run.startup.demonstrations import kept_at
from sf.shared.counters import CounterRow, Counters
from sf.shared.kept_games import allocate_games
from sf.shared.leaves import Leaves
from sf.shared.levels import Levels
from sf.shared.queues import IndexQueue, LocalQueues, PipeQueue, Queues, make_queues
from sf.shared.recovery import RecoveryMemory
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.requests import Channels
from sf.shared.scheduled import Scheduled
from sf.shared.seats import Seats
from sf.shared.slots import SlotPool
from sf.shared.task_table import TaskTable
from sf.shared.teaching import Teaching
from sf.shared.weights import SharedWeightsSpec
from sf.storage.run_dir import RunDir
from sf.system.arrays import Field, SharedArrays, private_arrays
from sf.system.machine.cores import PinnedCores
from sf.system.processes.stopping import StopFlag

_BYTES_PER_NUMBER = 8  # if all were float64
_BYTES_OF_A_NAME = 1 << 10  # in the header: of a tensor and its moments
_REST_OF_CHECKPOINT = 1 << 20  # random numbers, counters, settings


@dataclass(frozen=True)
class RunMemory:
    """The memory, with the plan that it was allocated by."""

    plan: Plan
    run_dir: RunDir
    queues: Queues  # what made those of the sampler and the learners
    pool: SlotPool
    channels: Channels
    weights: tuple[SharedWeightsSpec, ...]  # one a policy
    states: tuple[RecurrentStates, ...]  # one a policy
    counters: Counters
    counter_rows: Mapping[str, Sequence[int]]  # rows of the counters by role, in the order of the children's numbers
    pinned: PinnedCores  # the rollout workers
    recoveries: tuple[RecoveryMemory, ...]  # one a policy
    seats: Seats | None  # of players that do not learn, where the run has any
    shaping: SharedArrays | None  # `weights` [P, K] of shaped rewards by policy, where the environment has any
    scheduled: Scheduled | None  # what `--anneal` changes
    levels: Levels | None  # that learners choose from
    leaves: Leaves | None  # of searches, where these choose the actions
    games: SharedArrays | None  # of the buffer of games, where the learner has one
    teaching: Teaching | None  # where the run has teachers
    demonstrations: Path | None  # where the rows of demonstrations are
    tasks: TaskTable | None  # where the environment is several tasks
    found_tasks: FoundTasks | None  # of these, for the rollout workers
    evaluations: IndexQueue | None  # orders to the evaluator, where there is one
    stop: StopFlag
    started_at: float

    @classmethod
    def allocate(cls, plan: Plan, run_dir: RunDir, counts: Mapping[str, int]) -> RunMemory:
        """counts: children of the run, by role. The memory of a serial run is that of this process alone."""
        with private_arrays() if plan.config.run.serial else nullcontext():
            return cls._allocate(plan, run_dir, counts)

    @classmethod
    def _allocate(cls, plan: Plan, run_dir: RunDir, counts: Mapping[str, int]) -> RunMemory:
        sampler = plan.config.sampler
        shaping = None
        if plan.spec.shaping:
            shaping = SharedArrays([Field("weights", (plan.num_policies, len(plan.spec.shaping)), np.float32)])
            shaping["weights"][:] = list(plan.spec.shaping.values())
        found_tasks = FoundTasks.of(plan.config.run.env, plan.config.environment) if plan.spec.tasks else None
        queues = LocalQueues() if plan.config.run.serial else make_queues(sampler.queues)
        channels = Channels.allocate(
            num_workers=plan.num_workers,
            groups_per_worker=sampler.num_groups_per_worker,
            slots_per_group=plan.slots_per_group,
            actors_per_group=plan.leaves_per_group or plan.actors_per_group,
            policy_workers_per_policy=sampler.policy_workers_per_policy,
            num_policies=plan.num_policies,
            has_seats=plan.num_seats > 0,
            asks_for_some=plan.leaves_per_group > 0,
            queues=queues,
        )
        return cls(
            plan=plan,
            run_dir=RunDir(run_dir.path.absolute()),
            queues=queues,
            pool=SlotPool.allocate(
                plan.spec,
                plan.config.rollout,
                inboxes=channels.inboxes,
                groups_per_worker=sampler.num_groups_per_worker,
                slots_per_group=plan.slots_per_group,
                actors_per_group=plan.actors_per_group,
                num_policies=plan.num_policies,
                has_seats=plan.num_seats > 0,
                num_together=plan.num_together,
                queues=queues,
            ),
            channels=channels,
            weights=tuple(
                SharedWeightsSpec.allocate(plan.device_of(policy_id), network.num_weights)
                for policy_id, network in enumerate(plan.networks)
            ),
            states=tuple(
                RecurrentStates(network.state_size, plan.num_actors, plan.num_slots) for network in plan.networks
            ),
            counters=Counters.allocate(sum(counts.values())),
            counter_rows=rows_by_role(counts),
            pinned=plan.pin_workers(),
            recoveries=tuple(RecoveryMemory(_most_bytes_of_checkpoint(network)) for network in plan.networks),
            seats=Seats.allocate(plan.num_seats, plan.num_groups, plan.num_mains, plan.pool_roles.num_opposed)
            if plan.num_seats
            else None,
            shaping=shaping,
            scheduled=Scheduled.allocate(plan.schedules, plan.num_policies, plan.num_actors)
            if plan.schedules
            else None,
            leaves=Leaves.allocate(plan.networks[0].spec, plan.num_groups, plan.leaves_per_group)
            if plan.leaves_per_group
            else None,
            games=_games(plan) if plan.num_buffered_games else None,
            levels=Levels.allocate(plan.levels, plan.num_policies) if plan.levels is not None else None,
            teaching=_teaching(plan) if plan.teachers else None,
            demonstrations=kept_at(run_dir.path, plan.config.learner.demonstrations)
            if plan.config.learner.demonstrations
            else None,
            found_tasks=found_tasks,
            tasks=TaskTable.allocate(list(plan.spec.tasks), plan.tasks_of_groups) if plan.spec.tasks else None,
            evaluations=PipeQueue(1) if plan.num_evaluators else None,
            stop=StopFlag(),
            started_at=time.monotonic(),
        )

    def checkpoints_of(self, policy_id: int) -> Path:
        return self.run_dir.checkpoints_of(policy_id, self.plan.num_policies)

    @property
    def videos(self) -> list[Path]:
        """Directories, of all policies."""
        num_policies = self.plan.num_policies
        return [self.run_dir.videos_of(policy_id, num_policies) for policy_id in range(num_policies)]

    def counter_row(self, role: str, idx: int) -> CounterRow:
        return self.counters.row(self.counter_rows[role][idx])


def rows_by_role(counts: Mapping[str, int]) -> dict[str, range]:
    """Rows of the counters. counts: children of the run, by role."""
    rows, first = {}, 0
    for role, count in counts.items():
        rows[role] = range(first, first + count)
        first += count
    return rows


def _games(plan: Plan) -> SharedArrays:
    return allocate_games(plan.spec, plan.num_buffered_games * plan.spec.num_agents, plan.bytes_of_games)


def _teaching(plan: Plan) -> Teaching:
    learner = plan.config.learner
    assert learner.teaching_share is not None
    return Teaching.allocate(plan.num_policies, learner.teaching_share, falls=learner.teacher_on.startswith("mix"))


def _most_bytes_of_checkpoint(network: PolicyNetwork) -> int:
    """A tensor is in it under each of its names, and has two moments under one of them."""
    num_in_network = sum(math.prod(shape) for shape in network.weight_shapes.values())
    num_numbers = num_in_network + 2 * network.num_weights + network.num_beside
    return _BYTES_PER_NUMBER * num_numbers + _BYTES_OF_A_NAME * len(network.weight_shapes) + _REST_OF_CHECKPOINT
