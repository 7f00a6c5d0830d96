"""Leaves out the parts of an observation space that no network here can read.

Observations of other packages may have such parts beside numbers, for example an instruction in words.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import gymnasium as gym

from sf.envs.errors import UsageError
from sf.envs.remarks import remark

_READ = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)


def seen_space(env_id: str, space: gym.Space) -> gym.Space:
    """Returns the space itself, or one without the parts that cannot be read, each of which is remarked.

    A Tuple with such a part becomes a Dict of the others, with their indices as keys. Raises UsageError where nothing
    is left, or where a key of a Dict is no text.
    """
    _require_text_keys(env_id, space)
    left_out: dict[str, gym.Space] = {}
    seen = _seen(space, (), left_out)
    if seen is None:
        raise UsageError(
            f"{env_id}: its observation space {space} has nothing that a network can read: wrap the environment with "
            "gymnasium.wrappers.TransformObservation, which converts the observation to a Box"
        )
    if left_out:
        parts = " and ".join(f"{name!r} ({type(part).__name__})" for name, part in left_out.items())
        remark(
            f"{env_id} left out", f"{env_id}: the policy does not see {parts} of the observation: no network reads it"
        )
    return seen


def _require_text_keys(env_id: str, space: gym.Space) -> None:
    if not isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        return
    for name, child in children(space):
        if not isinstance(name, str):
            raise UsageError(
                f"{env_id}: its observation space has a Dict with the key {name!r}: name keys by text, such as "
                f"{str(name)!r}, there and in what reset and step return"
            )
        _require_text_keys(env_id, child)


def children(space: gym.spaces.Dict | gym.spaces.Tuple) -> Iterator[tuple[str, gym.Space]]:
    """Yields the spaces in a Dict or a Tuple by their names; those in a Tuple are called "0", "1" and so on."""
    if isinstance(space, gym.spaces.Dict):
        yield from space.items()
    else:
        yield from ((str(n), child) for n, child in enumerate(space.spaces))


def _seen(space: gym.Space, path: tuple[str, ...], left_out: dict[str, gym.Space]) -> gym.Space | None:
    """None: nothing of it can be read."""
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple):
        before = dict(children(space))
        by_name = {name: _seen(child, (*path, name), left_out) for name, child in before.items()}
        kept = OrderedDict((name, child) for name, child in by_name.items() if child is not None)
        if not before or (len(kept) == len(before) and all(kept[name] is before[name] for name in kept)):
            return space
        if not kept:
            return None
        if isinstance(space, gym.spaces.Tuple) and len(kept) == len(before):
            return gym.spaces.Tuple(list(kept.values()))
        return gym.spaces.Dict(kept)  # an OrderedDict keeps its order there
    if isinstance(space, _READ):
        return space
    left_out["/".join(path) or "obs"] = space
    return None
