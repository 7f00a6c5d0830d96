"""Which of the agents that ask have their turn: an agent that waits needs no network to be told so."""

from __future__ import annotations

import numpy as np

from sf.arrays import SharedArrays
from sf.envs import ActionSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.slots import OBS


class Turns:
    """By the action masks, of which all zeros are those of an agent that waits.

    Its action is 0, with probability 1, and its value is not looked at (`sf.learner.loss.waiting`).
    """

    def __init__(self, masks: np.ndarray) -> None:
        self._masks = masks  # [num_slots, T+1, A]

    @classmethod
    def where_there_are(cls, rows: SharedArrays, action_spec: ActionSpec) -> Turns | None:
        """None where every agent always has something to choose. rows: of the slots."""
        masks = rows.named(OBS).get(ACTION_MASK)
        return None if masks is None or action_spec.num_continuous else cls(masks)

    def whose(self, slots: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """[N] bool: who has something to choose in these `rows` [N] of `slots` [N]."""
        masks = self._masks[slots, rows]
        return (masks > 0).reshape(len(masks), -1).any(axis=1)
