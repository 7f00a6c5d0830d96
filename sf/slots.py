"""Trajectory slots: the shared rows that rollout workers, policy workers and the learner write and read.

A slot is one actor for T steps with one policy. What a row means is said in `envs.group`; beside what the environment
gives, row t holds what the policy did at t. Row T of the observations is row 0 of the actor's next slot.

Life of a slot: free -> a rollout worker fills it -> the learner copies it -> free. `owner` says whose it is; the
queues say who may take it next. The queue of free slots is the only throttle of the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import gymnasium as gym
import numpy as np

from envs import ActionSpec, EnvSpec
from sf.memory import Field, SharedArrays
from sf.queues import STOP, IndexQueue

FREE = 0
LEARNER = 1
FIRST_ROLLOUT_WORKER = 2  # worker i owns its slots as FIRST_ROLLOUT_WORKER + i

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
        Field("truncated", steps, np.bool_),
        Field("valid", steps, np.bool_),
        Field("owner", (num_slots,), np.int32),
        Field("actor", (num_slots,), np.int32),
    ]


def bytes_per_slot(spec: EnvSpec, rollout: int) -> int:
    return sum(field.num_bytes for field in slot_fields(spec, 1, rollout))


class StopRequested(Exception):  # noqa: N818  it is no error
    """The parent asked this process to stop while it waited for a slot."""


@dataclass(frozen=True)
class SlotPool:
    """All slots with the queues they travel in."""

    arrays: SharedArrays
    free: IndexQueue
    full: IndexQueue

    @classmethod
    def allocate(cls, spec: EnvSpec, num_slots: int, rollout: int) -> SlotPool:
        pool = cls(SharedArrays(slot_fields(spec, num_slots, rollout)), IndexQueue(num_slots), IndexQueue(num_slots))
        pool.free.put_many(range(num_slots))
        return pool

    @property
    def num_slots(self) -> int:
        return len(self.arrays["owner"])

    def take(self, at_most: int, worker_idx: int, wait: bool) -> list[int]:
        """Take up to so many free slots for a rollout worker: those that are there, or with `wait`, at least one.

        Raises StopRequested where the parent asked to stop instead.
        """
        taken = self.free.get_many(at_most) if wait else self.free.get_many_nowait(at_most)
        if STOP in taken:
            self.free.put(STOP)  # one STOP wakes every worker
            raise StopRequested
        self.arrays["owner"][taken] = FIRST_ROLLOUT_WORKER + worker_idx
        return taken

    def hand_over(self, slots: list[int]) -> None:
        """Give filled slots to the learner."""
        self.arrays["owner"][slots] = LEARNER
        self.full.put_many(slots)

    def give_back(self, slots: list[int]) -> None:
        """Return slots whose data has been copied."""
        self.arrays["owner"][slots] = FREE
        self.free.put_many(slots)
