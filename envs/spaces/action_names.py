"""Finds what the choices of an action are called, if the environment says so: for a person who plays with keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import gymnasium as gym

from sf.envs.spaces.actions import ActionSpec
from sf.envs.wrappers.layers import objects

ActionNames = tuple[tuple[str, ...], ...]
"""Of each choice of each discrete head, in the order of `sf.envs.spaces.actions.ActionSpec`."""

_OF_GYMNASIUM = {
    "AcrobotEnv": ("LEFT", "NOOP", "RIGHT"),
    "BlackjackEnv": ("STICK", "HIT"),
    "CarRacing": ("NOOP", "RIGHT", "LEFT", "UP", "DOWN"),
    "CartPoleEnv": ("LEFT", "RIGHT"),
    "CliffWalkingEnv": ("UP", "RIGHT", "DOWN", "LEFT"),
    "FrozenLakeEnv": ("LEFT", "DOWN", "RIGHT", "UP"),
    "LunarLander": ("NOOP", "LEFT", "UP", "RIGHT"),
    "MountainCarEnv": ("LEFT", "NOOP", "RIGHT"),
    "TaxiEnv": ("DOWN", "UP", "RIGHT", "LEFT", "PICK_UP", "DROP_OFF"),
}
"""By class. Gymnasium names the actions of its own environments in their documentation alone."""


def action_names(env: Any, space: gym.Space) -> ActionNames:
    """The names for `space`, which every group calls its action space; () where the environment names none, or others.

    Each wrapper is asked before what it is around: for an attribute `action_names` (a name for each action, or a list
    of names for each head), for ALE's method `get_action_meanings`, and for an enumeration `actions`, as MiniGrid's.
    """
    sizes = ActionSpec.of(space).discrete_sizes
    for layer in objects(env):
        for find in _FINDERS:
            names = _read(find, layer)
            if names and tuple(map(len, names)) == sizes:
                return names
    return ()


def _read(find: Callable[[Any], Any], layer: Any) -> ActionNames:
    """Returns what it finds, as names by head. Anybody's attribute may have such a name, and be something else."""
    try:
        found = list(find(layer) or ())
        if all(isinstance(name, str) for name in found):
            found = [found]
        return tuple(tuple(map(str, head)) for head in found)
    except Exception:  # no names are no reason for an environment not to be used
        return ()


def _enumerated(layer: Any) -> Iterator[str]:
    return (each.name for each in layer.actions if isinstance(each, Enum))


def _of_gymnasium(layer: Any) -> Any:
    kind = type(layer)
    return _OF_GYMNASIUM.get(kind.__name__) if kind.__module__.startswith("gymnasium.") else None


_FINDERS: tuple[Callable[[Any], Any], ...] = (
    lambda layer: layer.action_names,
    lambda layer: layer.get_action_meanings(),
    _enumerated,
    _of_gymnasium,
)
