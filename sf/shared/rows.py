"""The table of the fields of a step, and the rows of trajectory slots that it lays out.

`sf.envs.group` says what a row means; beside what the environment gives, row t holds what the policy did at t. Row T of
a field with T+1 rows is row 0 of the actor's next slot, unless the group takes up another task between the two.
`sf.shared.slots` says how slots travel.

A new field is one line in `FIELDS`. Whatever allocates, writes, copies or sends steps follows the table: the slots, the
policy worker, the learner's batches and their transfers to a GPU, symmetric images, compiled steps and the estimate of
the memory that a run needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import gymnasium as gym
import numpy as np

from sf.envs import ActionSpec, EnvSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.shared.teaching import PARAMS
from sf.system.arrays import Field, SharedArrays

OBS = "obs/"  # prefix of the observation fields
SEARCHED = "search_policy"  # logits of what a search has found to be the better policy
FULLY_SEARCHED = "fully_searched"  # where the search was long enough to learn from
LOGITS = "logits"  # of all choices, at the leaves of searches


class Writer(Enum):
    """Which process writes a field."""

    ROLLOUT = "rollout worker"
    POLICY = "policy worker"
    LEARNER = "learner"


class Reader(Enum):
    """Which part of the run reads a field."""

    POLICY = "the policy worker, and the learner"
    CRITIC = "the critic alone, wherever the network runs"
    LEARNER = "the learner"


@dataclass(frozen=True)
class StepField:
    """One field of a step.

    shape: of one step of one actor. has_next: the field has T+1 rows, the last of which belongs to the next slot.
    is_optional: only runs whose spec names it have the field. answer: computes a field of the policy worker,
    [N, *shape] of `dtype` (int32 or float32), from a `sf.model.acting.Decision`; None: the network does not compute the
    field.
    """

    name: str
    dtype: Any
    writer: Writer
    reader: Reader = Reader.LEARNER
    shape: Callable[[ActionSpec], tuple[int, ...]] = lambda action: ()
    has_next: bool = False
    is_optional: bool = False
    answer: Callable[[Any], Any] | None = None


def _of_choices(action: ActionSpec) -> tuple[int, ...]:
    return (sum(action.discrete_sizes),)


FIELDS = [
    StepField("first", np.bool_, Writer.ROLLOUT, Reader.POLICY, has_next=True),
    StepField(
        "discrete",
        np.int32,
        Writer.POLICY,
        shape=lambda action: (len(action.discrete_sizes),),
        answer=lambda decision: decision.discrete,
    ),
    StepField(
        "continuous",
        np.float32,
        Writer.POLICY,
        shape=lambda action: (action.num_continuous,),
        answer=lambda decision: decision.continuous,
    ),
    StepField("log_prob", np.float32, Writer.POLICY, answer=lambda decision: decision.log_prob),
    StepField("value", np.float32, Writer.POLICY, answer=lambda decision: decision.value),
    StepField("policy_version", np.int32, Writer.POLICY),
    StepField("reward", np.float32, Writer.ROLLOUT),
    StepField("terminated", np.bool_, Writer.ROLLOUT),
    StepField("valid", np.bool_, Writer.ROLLOUT),
    StepField("level", np.int32, Writer.ROLLOUT, is_optional=True),
    StepField("intrinsic_advantage", np.float32, Writer.LEARNER, is_optional=True),
    StepField("demonstrated", np.bool_, Writer.LEARNER, is_optional=True),
    StepField(SEARCHED, np.float32, Writer.ROLLOUT, shape=_of_choices, is_optional=True),
    StepField(FULLY_SEARCHED, np.bool_, Writer.ROLLOUT, is_optional=True),
    StepField(
        LOGITS,
        np.float32,
        Writer.POLICY,
        shape=_of_choices,
        is_optional=True,
        answer=lambda decision: decision.out.params.float(),
    ),
    StepField(
        PARAMS,
        np.float32,
        Writer.POLICY,
        shape=lambda action: (sum(action.discrete_sizes) + 2 * action.num_continuous,),
        is_optional=True,
    ),
]


def step_fields(spec: EnvSpec) -> list[StepField]:
    """Returns the fields of a step in a run of these spaces, the observations first."""
    boxes = cast("dict[str, gym.spaces.Box]", dict(spec.obs_space.items()))
    observations = (_obs_field(key, box, key in spec.for_critic) for key, box in boxes.items())
    has = spec.optional_fields
    return [*observations, *(field for field in FIELDS if not field.is_optional or field.name in has)]


def policy_keys(spec: EnvSpec) -> list[str]:
    """Returns the keys of the observations that a policy sees, without those for the critic alone."""
    fields = [field for field in step_fields(spec) if field.name.startswith(OBS)]
    return [field.name.removeprefix(OBS) for field in fields if field.reader is Reader.POLICY]


def answered_fields(optional: Collection[str] = ()) -> list[StepField]:
    """Returns the fields of a step that the network computes in the policy worker. optional: those that a run has."""
    return [each for each in FIELDS if each.answer is not None and (not each.is_optional or each.name in optional)]


def policy_fields(spec: EnvSpec) -> list[StepField]:
    """Returns the fields of a step that a policy worker writes in a run of these spaces."""
    return [field for field in step_fields(spec) if field.writer is Writer.POLICY]


def _obs_field(key: str, box: gym.spaces.Box, is_hidden: bool) -> StepField:
    reader = Reader.CRITIC if is_hidden else Reader.POLICY
    return StepField(OBS + key, box.dtype, Writer.ROLLOUT, reader, lambda action: box.shape, has_next=True)


def slot_fields(spec: EnvSpec, num_slots: int, rollout: int) -> list[Field]:
    """Returns the arrays of the slots: each field of a step is [num_slots, T or T+1, *shape]."""
    action = ActionSpec.of(spec.action_space)
    return [
        *(
            Field(field.name, (num_slots, rollout + field.has_next, *field.shape(action)), field.dtype)
            for field in step_fields(spec)
        ),
        *(Field(name, (num_slots,), np.int32) for name in _OF_SLOTS),
    ]


# One number a slot. env_steps counts the rows that are decisions: of agents that act, and not ignored.
_OF_SLOTS = ("state", "actor", "policy", "env_steps")


def step_arrays(rows: SharedArrays) -> dict[str, np.ndarray]:
    """Returns the arrays of the fields of a step, by name, from those of the slots."""
    return {name: array for name, array in rows.named("").items() if name not in _OF_SLOTS}


def has_next(name: str) -> bool:
    """Returns whether the field of a step of this name has T+1 rows."""
    return name.startswith(OBS) or any(field.has_next for field in FIELDS if field.name == name)


def bytes_per_slot(spec: EnvSpec, rollout: int) -> int:
    return sum(field.num_bytes for field in slot_fields(spec, 1, rollout))


class TurnMask:
    """Which rows are decisions, by the action masks: one of all zeros is that of an agent that waits.

    An agent that waits needs no network: its action is 0, with probability 1, and its value is not looked at
    (`sf.learner.loss.masks`). Its row is no env step.
    """

    def __init__(self, masks: np.ndarray) -> None:
        self._masks = masks  # [num_slots, T+1, A]

    @classmethod
    def from_rows(cls, rows: SharedArrays, num_continuous: int | None = None) -> TurnMask | None:
        """Returns None if every agent always has something to choose.

        rows: of the slots. num_continuous: numbers in an action of the agents in question; None: of all agents.
        """
        if num_continuous is None:
            num_continuous = rows["continuous"].shape[-1]
        masks = rows.named(OBS).get(ACTION_MASK)
        return None if masks is None or num_continuous else cls(masks)

    def acts(self, slots: np.ndarray | Sequence[int], rows: np.ndarray | int) -> np.ndarray:
        """Returns [N] bool: which agents have something to choose in these `rows` [N] of `slots` [N]."""
        masks = self._masks[slots, rows]
        return np.any((masks != 0).reshape(len(masks), -1), axis=1)
