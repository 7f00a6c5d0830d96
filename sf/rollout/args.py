"""Defines what the parent tells a rollout worker when it starts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import gymnasium as gym

from sf.envs import EnvOptions
from sf.envs.custom.given import GivenEnv
from sf.envs.tasks.united import FoundTasks
from sf.rollout.assignment import AssignmentRules
from sf.rollout.searching import SearchArgs
from sf.shared.counters import CounterRow
from sf.shared.levels import Levels
from sf.shared.requests import WorkerChannel
from sf.shared.scheduled import Scheduled
from sf.shared.slots import WorkerSlots
from sf.shared.task_table import TaskTable
from sf.system.arrays import SharedArrays


@dataclass(frozen=True)
class RolloutWorkerArgs:
    """Everything a rollout worker needs to know."""

    env: str
    given_env: GivenEnv | None  # where `env` is the name of one that was given as an object
    options: EnvOptions
    num_envs_per_group: int
    rollout: int
    with_clock: bool  # for the critic, see `sf.envs.added.clock`
    with_state: bool  # for the critic, see `sf.envs.added.central_state`
    bootstrap_truncated: bool | Literal["auto"]  # as the flag
    decorrelate: bool  # as the flag
    seed: int
    seed_key: tuple[int, ...]  # differs from one start of this worker to the next
    is_serial: bool  # the run is one process: what an environment raises ends it
    is_synchronous: bool  # see docs/protocols.md
    is_first_start: bool  # of this worker in the run: no other one has died before it
    core: int | None  # pin this process, and the simulators it starts, to that core
    assignment: AssignmentRules
    action_space: gym.Space  # as the run was planned for
    objective: str  # the statistic of episodes that decides a match
    shaping: SharedArrays | None  # `weights` [P, K] of shaped rewards by policy, where the environment has any
    scheduled: Scheduled | None  # what `--anneal` changes
    levels: Levels | None  # that learners choose from
    tasks: TaskTable | None  # where the environment is several tasks
    found_tasks: FoundTasks | None  # by the parent, of these
    search: SearchArgs | None  # where a search chooses the actions
    slots: WorkerSlots
    channel: WorkerChannel
    counters: CounterRow
