"""Draws the levels of episodes where learners say how probable each is, and writes them into the rows."""

from __future__ import annotations

import numpy as np

from sf.envs.added.episode_options import LEVEL
from sf.envs.guard import GuardedGroup
from sf.rollout.assignment import Assignment
from sf.rollout.recorders import Recorder, Step
from sf.shared.levels import Levels


class LevelChoice(Recorder):
    """Tells each environment the level of its next episode, by the table of the policy that plays its first agent.

    The environments of a group play different levels as long as there are enough. Otherwise most of them would play
    the one with the highest score until the learner has another score for it.
    """

    def __init__(
        self, envs: GuardedGroup, levels: Levels, assignment: Assignment, rows: np.ndarray, rng: np.random.Generator
    ) -> None:
        """rows: [num_slots, T] of the levels. rng: of the draws."""
        self._envs, self._levels, self._assignment, self._rows, self._rng = envs, levels, assignment, rows, rng
        self._num_agents = envs.spec.num_agents
        self._present = [int(values[LEVEL]) for values in envs.option_values]  # [E]
        self._next = list(self._present)
        for env_idx in range(len(self._next)):
            self._choose(env_idx)
        self._of_actors = np.repeat(self._present, self._num_agents)  # [N]

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._rows[slots, 0] = self._of_actors

    def after_step(self, step: Step) -> None:
        if step.result.first.any():
            begins = (step.result.first & ~step.result.joined).reshape(-1, self._num_agents).any(axis=1)
            for env_idx in np.flatnonzero(begins).tolist():
                self._present[env_idx] = int(self._envs.option_values[env_idx][LEVEL])
                self._choose(env_idx)
            self._of_actors = np.repeat(self._present, self._num_agents)
        if step.t + 1 < self._rows.shape[1]:
            self._rows[step.slots, step.t + 1] = self._of_actors

    def _choose(self, env_idx: int) -> None:
        num_policies = len(self._levels.arrays["probabilities"])
        policy_id = min(int(self._assignment.policy[env_idx * self._num_agents]), num_policies - 1)
        others = (*range(env_idx), *range(env_idx + 1, len(self._next)))
        besides = {level for other in others for level in (self._present[other], self._next[other])}
        level = self._levels.draw(policy_id, besides, self._rng)
        self._next[env_idx] = level
        self._envs.set_ranges(env_idx, {LEVEL: (level, level)})
