"""Recorders follow the steps of a group, one for each feature. `sf.rollout.group` lists those of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sf.envs import Episode, StepResult
from sf.envs.guard import GuardedGroup
from sf.rollout.assignment import Assignment
from sf.shared.rows import TurnMask
from sf.system.arrays import SharedArrays


@dataclass(slots=True)
class Step:
    """A step that a group has taken. A recorder may change `finished` and `begins` for the recorders behind it."""

    slots: np.ndarray  # [N]
    t: int  # the row of these slots whose actions were applied
    result: StepResult
    finished: list[Episode]
    begins: np.ndarray  # [N] bool, where another policy or player may take over with the next row: `first`, or fewer


class Recorder:
    """Follows the steps of one group."""

    def begin_rollout(self, slots: np.ndarray) -> None:
        """Called when the group begins to fill `slots` [N]."""

    def after_step(self, step: Step) -> None:
        """Called when the group has written what the environments gave for a row."""
        raise NotImplementedError


class EnvSteps(Recorder):
    """Counts the env steps of slots: the rows that are decisions."""

    def __init__(self, rows: SharedArrays, num_actors: int) -> None:
        self._of_slots = rows["env_steps"]
        self._turns = TurnMask.from_rows(rows)
        self.num_of_last_step = 0
        self.has_played = np.zeros(num_actors, bool)  # [N] has had a step so far

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._of_slots[slots] = 0

    def after_step(self, step: Step) -> None:
        valid = step.result.valid
        self.has_played |= valid
        is_decision = valid if self._turns is None else valid & self._turns.acts(step.slots, step.t)
        self.num_of_last_step = int(np.count_nonzero(is_decision))
        self._of_slots[step.slots] += is_decision


class BotActions(Recorder):
    """Replaces the numbers of bots, which are no actions, by 0: a learner reads rows that are not valid, too."""

    def __init__(self, discrete: np.ndarray) -> None:
        self._discrete = discrete  # [num_slots, T, D]

    def after_step(self, step: Step) -> None:
        self._discrete[step.slots, step.t] = np.maximum(self._discrete[step.slots, step.t], 0)


class Games(Recorder):
    """Finds where a game begins for agents that draw for themselves.

    A lost life is an episode for the learner alone: the game, and its score, go on.
    """

    def __init__(self, num_actors: int) -> None:
        self._is_over = np.zeros(num_actors, bool)  # [N] an Episode has come, and the next game has not begun

    def after_step(self, step: Step) -> None:
        if step.finished:
            self._is_over[[episode.actor_idx for episode in step.finished]] = True
        step.begins = step.result.first & self._is_over
        self._is_over &= ~step.result.first


class PolicyChanges(Recorder):
    """Draws who plays from the next row on, and marks rows that are of no use to the policy that a slot is for.

    These are all rows from where another policy plays to the end of the slot.
    """

    def __init__(self, valid: np.ndarray, assignment: Assignment) -> None:
        self._valid = valid  # [num_slots, T]
        self._assignment = assignment
        self._slot_policy = assignment.learner.copy()  # [N] whose the slots are that are being filled
        self._slots_of_others = np.empty(0, np.int64)  # those of them that another policy has taken over

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._slot_policy[:] = self._assignment.learner
        self._slots_of_others = slots[:0]

    def after_step(self, step: Step) -> None:
        if len(self._slots_of_others):
            self._valid[self._slots_of_others, step.t] = False
        if self._assignment.after_step(step.begins):
            self._slots_of_others = step.slots[self._assignment.learner != self._slot_policy]


class Shaping(Recorder):
    """Shapes the rewards of an episode by the weights that its policy has when the episode begins.

    The rewards of a player that does not learn are never read.
    """

    def __init__(self, envs: GuardedGroup, weights: np.ndarray, policy: np.ndarray) -> None:
        """weights: [P, K]. policy: [N] of `Assignment`."""
        self._envs = envs
        self._weights = weights
        self._policy = policy
        self._shape(np.ones(len(policy), bool))

    def after_step(self, step: Step) -> None:
        self._shape(step.result.first)

    def _shape(self, who: np.ndarray) -> None:
        for n in np.flatnonzero(who & (self._policy < len(self._weights))).tolist():
            self._envs.set_shaping(n, self._weights[self._policy[n]])
