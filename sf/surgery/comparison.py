"""How far two networks differ in what they compute: on random observations, and on those of an environment."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sf.envs.spaces.actions import MASKS
from sf.envs.spaces.identity import Identity
from sf.model.distributions import IMPOSSIBLE
from sf.model.task_returns import scale_of
from sf.surgery.axes import NEW, places
from sf.surgery.observations import carried, random_obs
from sf.surgery.subject import Subject

TOLERANCE = 1e-5  # of logits, means and values, in units of the largest of them, or of 1
_STEPS = 4  # T
_ROWS = 8  # of each step, at least


class Pair(NamedTuple):
    """A policy before and after surgery, with networks that are loaded."""

    old: Subject
    old_network: Any
    new: Subject
    new_network: Any


class Difference(NamedTuple):
    """The largest differences of what is computed for the old choices and numbers, and of the values."""

    policy: float
    value: float

    @property
    def is_rounding(self) -> bool:
        return max(self) <= TOLERANCE


@torch.no_grad()
def difference(pair: Pair, seed: int = 0) -> Difference:
    """Compares both on short trajectories of random observations, some of which end inside.

    What only the new network sees is random, too, as it must not matter.
    """
    generator = np.random.default_rng(seed)
    num_agents = max(1, len(pair.new.teams))
    batch = num_agents * -(-_ROWS // num_agents)
    num_rows = (_STEPS + 1) * batch
    old_obs = random_obs(pair.old, pair.old_network, num_rows, generator)
    new_obs = random_obs(pair.new, pair.new_network, num_rows, generator)
    for mask in (new_obs.keys() - old_obs.keys()).intersection(MASKS):
        new_obs[mask].fill_(1)  # before there was one, all was allowed
    for key, box in pair.new.obs_space.items():
        if isinstance(box, Identity) and key in old_obs:
            new_obs[key].zero_()  # whoever was somebody before is nobody new
    new_obs = carried(old_obs, pair.old.obs, new_obs, pair.new.obs)
    first = torch.from_numpy(generator.random((_STEPS + 1, batch // num_agents)) < 0.3).repeat_interleave(num_agents, 1)
    first[0] = True
    params, values = [], []
    for network, obs in ((pair.old_network, old_obs), (pair.new_network, new_obs)):
        rows = {key: value.unflatten(0, first.shape) for key, value in obs.items()}
        out = network.unroll(rows, torch.zeros(batch, network.state_size), first)
        params.append(out.params.flatten(0, 1))
        values.append(scale_of(network.value_norm, rows).denormalize(out.value))
    return Difference(_largest(*common(pair, *params)), _largest(*values))


def common(pair: Pair, old: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what both compute for the same choices and numbers [M, K]. old, new: the params [M, P] of each."""
    new_axis, old_axis = ((*of.actions.choices, *of.actions.numbers, *_stddevs(of)) for of in (pair.new, pair.old))
    where = places(new_axis, old_axis)
    known = (where != NEW).nonzero().flatten()
    return old[:, where[known]], new[:, known]


def _stddevs(subject: Subject) -> list[Any]:
    return [block._replace(name=f"stddev of {block.name}") for block in subject.actions.numbers]


def _largest(old: Tensor, new: Tensor) -> float:
    possible = old > IMPOSSIBLE / 2
    size = old[possible].abs().amax().clamp(min=1.0) if possible.any() else 1.0
    return float(((new - old).abs() / size).nan_to_num(nan=torch.inf).amax()) if old.numel() else 0.0
