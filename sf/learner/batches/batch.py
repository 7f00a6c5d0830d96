"""The data of an iteration: trajectories side by side, time-major, on the device of the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sf.envs import EnvSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.shared.rows import OBS, has_next, slot_fields, step_arrays
from sf.system import gpu
from sf.system.arrays import SharedArrays


class Batch:
    """B trajectories of T steps on the device: the fields of `sf.shared.rows`, each an attribute.

    obs: each [T+1, B, ...]; first: [T+1, B] bool; state: [B, S] float32, recurrent state before row 0;
    discrete: [T, B, D] int32; continuous: [T, B, C] float32; the others [T, B], of which the last two are there
    only where the run has them. fields: all but obs and state, by name.
    """

    first: Tensor
    discrete: Tensor
    continuous: Tensor
    log_prob: Tensor
    value: Tensor
    policy_version: Tensor
    reward: Tensor
    terminated: Tensor
    valid: Tensor
    level: Tensor
    intrinsic_advantage: Tensor

    def __init__(self, obs: dict[str, Tensor], state: Tensor, **fields: Tensor) -> None:
        self.obs = obs
        self.state = state
        self.fields = fields
        vars(self).update(fields)

    @classmethod
    def from_named(cls, named: dict[str, Tensor], state: Tensor) -> Batch:
        """named: the fields by the names that they have in the slots."""
        obs = {name.removeprefix(OBS): tensor for name, tensor in named.items() if name.startswith(OBS)}
        return cls(obs, state, **{name: tensor for name, tensor in named.items() if not name.startswith(OBS)})

    @classmethod
    def empty(
        cls, rows: SharedArrays, num_trajectories: int, state_size: int, device: str, on_host: bool = False
    ) -> Batch:
        """on_host: in host memory, from which it is sent to `device`."""

        def new(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
            if on_host:
                return gpu.page_locked(shape, dtype, device)
            return torch.empty(shape, dtype=dtype, device=gpu.torch_device(device))

        def like(array: np.ndarray) -> Tensor:
            time_major = (array.shape[1], num_trajectories, *array.shape[2:])
            return new(time_major, torch.from_numpy(array[:0]).dtype)

        named = {name: like(array) for name, array in step_arrays(rows).items()}
        return cls.from_named(named, new((num_trajectories, state_size), torch.float32))

    @classmethod
    def example(cls, spec: EnvSpec) -> Batch:
        """Returns a trajectory of one step, of a network without memory. All of it is 0."""
        return cls.empty(SharedArrays(slot_fields(spec, num_slots=1, rollout=1)), 1, 0, gpu.HOST).map(torch.zeros_like)

    def named(self) -> dict[str, Tensor]:
        """Returns the fields by the names that they have in the slots, always in the same order."""
        return {**{OBS + key: value for key, value in self.obs.items()}, **self.fields}

    def tensors(self) -> list[Tensor]:
        """Returns all tensors, always in the same order."""
        return [*self.named().values(), self.state]

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """Returns a batch of what `change` makes of each tensor."""
        return self.from_named({name: change(value) for name, value in self.named().items()}, change(self.state))

    def replaced(self, **changed: Any) -> Batch:
        """Returns a batch with other obs, state or fields, and the rest of this one."""
        return Batch(**{"obs": self.obs, "state": self.state, **self.fields, **changed})

    @property
    def num_trajectories(self) -> int:
        return self.first.shape[1]

    @property
    def num_samples(self) -> int:
        return self.reward.numel()

    def acts(self) -> Tensor | None:
        """Returns [T+1, B] bool: whether the agent has anything to choose, by its action mask. None: always."""
        mask = self.obs.get(ACTION_MASK)
        if mask is None or self.continuous.shape[-1]:
            return None
        return (mask != 0).flatten(2).any(-1)

    def without_last_step(self) -> Batch:
        """Returns the first T-1 steps, so that the value of each observation is in `value`."""
        return self.from_named({name: value[:-1] for name, value in self.named().items()}, self.state)

    def columns(self, index: Tensor) -> Batch:
        """Returns the trajectories at `index` [b]."""
        named = {name: value.index_select(1, index) for name, value in self.named().items()}
        return self.from_named(named, self.state.index_select(0, index))

    def steps(self, index: Tensor) -> Batch:
        """Returns the steps at `index` [M, A] of all T x B, as A trajectories of M steps, for a network without memory.

        To such a network unrelated steps are a trajectory like any other. The last observation is never used.
        """
        with_last = torch.cat((index, index[-1:]))

        def taken(value: Tensor, with_next: bool) -> Tensor:
            steps, at = (value[:-1], with_last) if with_next else (value, index)
            return steps.flatten(0, 1).index_select(0, at.flatten()).unflatten(0, at.shape)

        named = {name: taken(value, has_next(name)) for name, value in self.named().items()}
        named["first"] = torch.ones_like(named["first"])
        return self.from_named(named, self.state[: index.shape[1]])
