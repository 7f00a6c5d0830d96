"""What the numbers of observations and actions are called, so that those of two environments can be compared.

An observation is known by its key, a head by its place in the action space. A number of a `MultiDiscrete` observation
is a block of its own, as its choices are one-hot: so each may get more choices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import gymnasium as gym

from sf.envs.added.central_state import StateShare
from sf.envs.spaces.actions import ACTION_MASK, CONTINUOUS_MASK, heads
from sf.envs.spaces.seen_spaces import children
from sf.surgery.axes import Axis, Block

_BARE = "0"  # a space without a name is what the first of a Tuple would be


class ActionAxes(NamedTuple):
    """The logits of all heads, and the continuous numbers."""

    choices: Axis
    numbers: Axis


def action_axes(space: gym.Space) -> ActionAxes:
    """Returns how the outputs of a policy are laid out, see `sf.envs.spaces.actions.ActionSpec`."""
    choices: list[Block] = []
    numbers: list[Block] = []
    for name, leaf in _leaves(space, ""):
        found = heads(leaf)
        if found is None:
            numbers.append(Block(f"number {name or _BARE}", leaf.shape or (1,)))
        else:
            choices += [Block(f"head {name or _BARE}.{n}", (size,)) for n, size in enumerate(found.sizes.tolist())]
    return ActionAxes(tuple(choices), tuple(numbers))


def obs_axes(native: gym.Space, rows: gym.spaces.Dict, actions: ActionAxes) -> dict[str, Axis]:
    """Returns how each observation is laid out, flattened.

    native: the space as the environment has it. rows: the same as `sf.envs.spaces.observations` stores it, with what
    the trainer adds.
    """
    as_they_came = {name or "obs": leaf for name, leaf in _leaves(native, "")}
    of_masks = {ACTION_MASK: actions.choices, CONTINUOUS_MASK: actions.numbers}
    return {key: of_masks.get(key) or _of_one(key, box, as_they_came.get(key)) for key, box in rows.items()}


def _of_one(key: str, box: gym.Space, native: gym.Space | None) -> Axis:
    if isinstance(native, gym.spaces.MultiDiscrete) and len(native.shape) == 1:
        return tuple(Block(f"observation {key}.{n}", (int(num),)) for n, num in enumerate(native.nvec))
    if isinstance(box, StateShare):
        box = box.whole
    assert box.shape is not None
    return (Block(f"observation {key}", box.shape),)


def _leaves(space: gym.Space, name: str) -> Iterator[tuple[str, gym.Space]]:
    """Yields the parts without parts, with their keys joined by "/"."""
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        for key, child in children(space):
            yield from _leaves(child, f"{name}/{key}" if name else key)
    else:
        yield name, space
