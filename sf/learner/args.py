"""What the parent tells a learner when it starts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from sf.config import Config
from sf.counters import CounterRow
from sf.envs import EnvSpec
from sf.envs.spaces.symmetries import Symmetry
from sf.learner.end_of_run import EndOfRun
from sf.processes.stopping import StopFlag
from sf.ranks.place import Place
from sf.recovery import RecoveryMemory
from sf.recurrent_states import RecurrentStates
from sf.slots import LearnerSlots
from sf.weights import SharedWeightsSpec


@dataclass(frozen=True)
class LearnerArgs:
    """Everything the learner needs to know."""

    config: Config
    policy_id: int
    spec: EnvSpec
    symmetries: Sequence[Symmetry]  # to augment data by; none where that is not wanted
    num_actors: int
    bfloat16: bool
    num_threads: int
    num_gradient_workers: int
    weights: SharedWeightsSpec
    states: RecurrentStates
    policy_workers: Connection  # the parent sends the pipe of each policy worker here, to share the weights over
    slots: LearnerSlots
    counters: CounterRow
    checkpoints: Path
    milestones: Path  # where checkpoints are kept for good
    target_env_steps: int | None  # to end by itself; None where the parent ends the run
    end: EndOfRun  # for schedules
    recoveries: tuple[RecoveryMemory, ...]  # of all policies
    orders: Connection  # decisions of the parent over the population, see sf.learner.orders
    hyperparameters: dict[str, float]  # that differ from the configuration
    predecessor_env_steps: int | None  # that the learner before this one had reached; None at the first start
    started_at: float  # time.monotonic() of the start of the run, which is the same clock in all processes
    place: Place  # among the ranks
    stop: StopFlag
