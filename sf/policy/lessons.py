"""Asks teachers for the actors of a policy worker, and lets them act in some trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from sf.envs import ActionSpec, EnvSpec
from sf.model.distributions import ActionDistribution
from sf.shared.rows import OBS
from sf.shared.teaching import PARAMS, Teaching
from sf.system.arrays import SharedArrays

_OF_LESSONS = 1  # the key of what is drawn for them


class Lessons:
    """Asks a teacher for the actors of a batch.

    Where the teacher acts, it does so for a whole trajectory, so the probabilities in its rows are those of who acted,
    which V-trace corrects for.
    """

    def __init__(
        self,
        teacher: Any,
        teaching: Teaching,
        policy_id: int,
        spec: EnvSpec,
        rows: SharedArrays,
        seed: tuple[int, ...],
    ) -> None:
        """teacher: a `sf.evaluation.play.teachers.Teacher`. rows: of the slots. seed: with the version of the weights,
        of what is drawn."""
        self._teacher, self._teaching, self._policy_id = teacher, teaching, policy_id
        self._action_spec = ActionSpec.of(spec.action_space)
        self._obs = rows.named(OBS)
        self._acts_in = np.zeros(len(rows["first"]), bool)  # [num_slots] the teacher acts in this trajectory
        self._seed = seed
        self.begin_version(0)

    def begin_version(self, version: int) -> None:
        """Draw by the version of the weights from here on, so that a resumed synchronous run draws as it would have."""
        self._rng = np.random.default_rng((*self._seed, _OF_LESSONS, version))
        self._generator = torch.Generator().manual_seed(int(self._rng.integers(2**62)))

    def close(self) -> None:
        self._teacher.close()

    def added_to(
        self,
        answers: Mapping[str, np.ndarray],
        slots: np.ndarray,
        rows: np.ndarray,
        actors: np.ndarray,
        first: np.ndarray,
    ) -> Mapping[str, np.ndarray]:
        """Returns the answers of N actors with what the teacher says, and its action and probability where it acts."""
        begin = slots[rows == 0]
        self._acts_in[begin] = self._rng.random(len(begin)) < self._teaching.acting_share(self._policy_id)
        acts = self._acts_in[slots]
        if self._teaching.left(self._policy_id) == 0.0 and not acts.any():
            return answers
        said = self._teacher.params({key: obs[slots, rows] for key, obs in self._obs.items()}, first, actors)
        found = {**answers, PARAMS: said}
        if acts.any():
            distribution = ActionDistribution(self._action_spec, torch.from_numpy(said[acts]))
            discrete, continuous = distribution.sample(self._generator)
            own = {
                "discrete": discrete,
                "continuous": continuous,
                "log_prob": distribution.log_prob(discrete, continuous),
            }
            for name, drawn in own.items():
                found[name] = answers[name].copy()
                found[name][acts] = drawn.numpy()
        return found
