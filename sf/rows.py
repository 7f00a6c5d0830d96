"""The rows of trajectory slots: their fields, and whose turn it is in them.

`sf.envs.group` says what a row means; beside what the environment gives, row t holds what the policy did at t. Row T of
the observations is row 0 of the actor's next slot. `sf.slots` says how slots travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import gymnasium as gym
import numpy as np

from sf.arrays import Field, SharedArrays
from sf.envs import ActionSpec, EnvSpec
from sf.envs.spaces.actions import ACTION_MASK

OBS = "obs/"  # prefix of the observation fields


def slot_fields(spec: EnvSpec, num_slots: int, rollout: int) -> list[Field]:
    """The schema: every field is [num_slots, rows of the slot, ...]."""
    action = ActionSpec.of(spec.action_space)
    boxes = cast("dict[str, gym.spaces.Box]", dict(spec.obs_space.items()))
    steps = (num_slots, rollout)
    steps_and_next = (num_slots, rollout + 1)
    return [
        *(Field(OBS + key, steps_and_next + boxes[key].shape, boxes[key].dtype) for key in boxes),
        Field("first", steps_and_next, np.bool_),
        Field("discrete", (*steps, len(action.discrete_sizes)), np.int32),
        Field("continuous", (*steps, action.num_continuous), np.float32),
        Field("log_prob", steps, np.float32),
        Field("value", steps, np.float32),
        Field("policy_version", steps, np.int32),
        Field("reward", steps, np.float32),
        Field("terminated", steps, np.bool_),
        Field("valid", steps, np.bool_),
        Field("state", (num_slots,), np.int32),
        Field("actor", (num_slots,), np.int32),
        Field("policy", (num_slots,), np.int32),
        Field("env_steps", (num_slots,), np.int32),  # rows that are decisions: of agents that act, and not ignored
    ]


def bytes_per_slot(spec: EnvSpec, rollout: int) -> int:
    return sum(field.num_bytes for field in slot_fields(spec, 1, rollout))


class Turns:
    """Which rows are decisions, by the action masks: one of all zeros is that of an agent that waits.

    An agent that waits needs no network: its action is 0, with probability 1, and its value is not looked at
    (`sf.learner.loss.waiting`). Its row is no env step.
    """

    def __init__(self, masks: np.ndarray) -> None:
        self._masks = masks  # [num_slots, T+1, A]

    @classmethod
    def where_there_are(cls, rows: SharedArrays) -> Turns | None:
        """None where every agent always has something to choose. rows: of the slots."""
        masks = rows.named(OBS).get(ACTION_MASK)
        return None if masks is None or rows["continuous"].shape[-1] else cls(masks)

    def whose(self, slots: np.ndarray | Sequence[int], rows: np.ndarray | int) -> np.ndarray:
        """[N] bool: who has something to choose in these `rows` [N] of `slots` [N]."""
        masks = self._masks[slots, rows]
        return np.any((masks != 0).reshape(len(masks), -1), axis=1)
