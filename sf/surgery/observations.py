"""Observations of two networks that stand for the same: what both see, and what only one of them does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sf.envs.added.central_state import StateShare
from sf.envs.spaces.actions import ACTION_MASK, MASKS
from sf.envs.spaces.identity import Identity
from sf.envs.spaces.observations import obs_arrays
from sf.model.normalizers import VectorNormalizer
from sf.surgery.axes import NEW, Axis, places
from sf.surgery.subject import Subject

_LARGEST = 255  # of the integers that are drawn

Obs = dict[str, Tensor]


def random_obs(subject: Subject, network: Any, num_rows: int, generator: np.random.Generator) -> Obs:
    """Draws observations {key: [N, ...]} of the spaces, numbers by the network's own statistics of them.

    num_rows: N, all agents of each environment side by side.
    """
    known = _statistics(network)
    obs = {key: _drawn(box, known.get(key), num_rows, generator) for key, box in subject.obs_space.items()}
    if ACTION_MASK in obs:  # each head has a choice
        flat, begin = obs[ACTION_MASK].flatten(1), 0
        for block in subject.actions.choices:
            flat[torch.arange(num_rows), torch.from_numpy(generator.integers(block.size, size=num_rows)) + begin] = 1
            begin += block.size
    return obs


def zeros(subject: Subject, num_rows: int) -> Obs:
    """Returns observations {key: [N, ...]} of nothing; all choices are allowed."""
    arrays = obs_arrays(subject.obs_space, num_rows)
    return {key: torch.from_numpy(rows + (key in MASKS)) for key, rows in arrays.items()}


def carried(
    obs: Mapping[str, Tensor], of: Mapping[str, Axis], into: Mapping[str, Tensor], new: Mapping[str, Axis]
) -> Obs:
    """Writes observations [N, ...] of one network to their places in those of another.

    of, new: how both are laid out. into: what stands where the first knows nothing, {key: [N, ...]}; stays as it is.
    """
    out = {key: rows.clone() for key, rows in into.items()}
    for key in obs.keys() & into.keys():
        if of.get(key, new[key]) == new[key]:
            out[key] = obs[key].to(into[key].dtype)
            continue
        where = places(new[key], of[key])
        known = (where != NEW).nonzero().flatten()
        out[key].flatten(1)[:, known] = obs[key].flatten(1)[:, where[known]].to(into[key].dtype)
    return out


def _statistics(network: Any) -> dict[str, VectorNormalizer]:
    norm = getattr(network, "obs_norm", None)
    if norm is None:
        return {}
    pairs = zip(norm.keys, norm.normalizers, strict=True)
    return {key: part for key, part in pairs if isinstance(part, VectorNormalizer)}


def _drawn(box: Any, known: VectorNormalizer | None, num_rows: int, generator: np.random.Generator) -> Tensor:
    shape = (num_rows, *box.shape)
    if isinstance(box, StateShare):
        states = _drawn(box.whole, None, num_rows // box.num_agents, generator)
        return torch.from_numpy(np.concatenate([box.cut(state) for state in states.numpy()]))
    if isinstance(box, Identity):
        return torch.from_numpy(np.eye(box.shape[0], dtype=np.float32)[generator.integers(box.shape[0], size=num_rows)])
    if np.issubdtype(box.dtype, np.integer):
        low, high = (bound.astype(np.int64).clip(-_LARGEST, _LARGEST) for bound in (box.low, box.high))
        return torch.from_numpy(generator.integers(low, high + 1, shape).astype(box.dtype))
    numbers = generator.standard_normal(shape)
    if known is not None:
        numbers = known.moments.mean.numpy() + known.moments.stddev.numpy() * numbers
    return torch.from_numpy(numbers.clip(box.low, box.high).astype(box.dtype))
