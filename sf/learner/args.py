"""Defines what the parent tells a learner when it starts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.spaces.symmetries import Symmetry
from sf.ranks.place import Place
from sf.shared.counters import CounterRow
from sf.shared.levels import Levels
from sf.shared.recovery import RecoveryMemory
from sf.shared.recurrent_states import RecurrentStates
from sf.shared.scheduled import Scheduled
from sf.shared.slots import LearnerSlots
from sf.shared.teaching import Teaching
from sf.shared.weights import SharedWeightsSpec
from sf.system.arrays import SharedArrays
from sf.system.processes.stopping import StopFlag


@dataclass(frozen=True)
class EndOfRun:
    """Tells where the run ends, as one learner knows it. Schedules depend on it.

    env_steps: of all policies together, at which the run ends; None: not by steps. seconds: the same in wall time.
    others: counters of the learners of the other policies. others_before: their env steps in earlier parts of the run.
    """

    env_steps: int | None
    seconds: float | None
    others: Sequence[CounterRow] = ()
    others_before: int = 0

    def share_done(self, env_steps: int, seconds: float) -> float:
        """Returns a share from 0 to 1; 0 in a run without an end. env_steps: of this policy. seconds: of the run.

        Env steps decide where the run ends by them, even if it may end by the clock before. So a synchronous run is the
        same each time.
        """
        if self.env_steps is not None:
            of_others = self.others_before + sum(int(row.get("steps")) for row in self.others)
            return min(1.0, (env_steps + of_others) / max(1, self.env_steps))
        return 0.0 if self.seconds is None else min(1.0, seconds / self.seconds)


@dataclass(frozen=True)
class LearnerArgs:
    """Holds everything that a learner needs to know."""

    config: Config
    policy_id: int
    spec: EnvSpec  # of the policy
    symmetries: Sequence[Symmetry]  # to augment data by; none where that is not wanted
    teams: Sequence[int]  # [A] of the agents of an environment that are trained on together; empty: one by one
    num_actors: int
    bfloat16: bool
    num_threads: int
    num_gradient_workers: int
    weights: SharedWeightsSpec
    states: RecurrentStates
    # The parent sends the pipe of each policy worker here, to share the weights over. None in a run of one process.
    policy_workers: Connection | None
    slots: LearnerSlots
    counters: CounterRow
    checkpoints: Path
    milestones: Path  # where checkpoints are kept for good
    target_env_steps: int | None  # to end by itself; None where the parent ends the run
    end: EndOfRun  # for schedules
    scheduled: Scheduled | None  # what `--anneal` changes
    levels: Levels | None  # that learners choose from
    teaching: Teaching | None  # how much teachers are listened to
    games: SharedArrays | None  # of `sf.shared.kept_games`, where the learner trains on a buffer of games
    demonstrations: Path | None  # where rows of `sf.storage.demonstrations` are
    recoveries: tuple[RecoveryMemory, ...]  # of all policies
    orders: Connection  # decisions of the parent over the population, see sf.learner.orders
    hyperparameters: dict[str, float]  # that differ from the configuration
    predecessor_env_steps: int | None  # that the learner before this one had reached; None at the first start
    started_at: float  # time.monotonic() of the start of the run, which is the same clock in all processes
    place: Place  # among the ranks
    stop: StopFlag
