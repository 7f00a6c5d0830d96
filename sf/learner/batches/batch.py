"""The data of an iteration: trajectories side by side, time-major, on the device of the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sf import gpu
from sf.arrays import SharedArrays
from sf.envs import EnvSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.rows import OBS, slot_fields

STEP_FIELDS = (
    "discrete",
    "continuous",
    "log_prob",
    "value",
    "policy_version",
    "reward",
    "terminated",
    "valid",
)


@dataclass(frozen=True)
class Batch:
    """B trajectories of T steps on the device.

    obs: each [T+1, B, ...]; first: [T+1, B] bool; state: [B, S] float32, recurrent state before row 0;
    discrete: [T, B, D] int32; continuous: [T, B, C] float32; the others [T, B].
    """

    obs: dict[str, Tensor]
    first: Tensor
    state: Tensor
    discrete: Tensor
    continuous: Tensor
    log_prob: Tensor
    value: Tensor
    policy_version: Tensor
    reward: Tensor
    terminated: Tensor
    valid: Tensor

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

        return cls(
            obs={key: like(array) for key, array in rows.named(OBS).items()},
            first=like(rows["first"]),
            state=new((num_trajectories, state_size), torch.float32),
            **{name: like(rows[name]) for name in STEP_FIELDS},
        )

    @classmethod
    def example(cls, spec: EnvSpec) -> Batch:
        """A trajectory of one step, of a network without memory. All of it is 0."""
        tensors = {
            field.name: torch.from_numpy(np.zeros((field.shape[1], 1, *field.shape[2:]), field.dtype))
            for field in slot_fields(spec, num_slots=1, rollout=1)
            if field.name.startswith(OBS) or field.name in ("first", *STEP_FIELDS)
        }
        obs = {name.removeprefix(OBS): tensors.pop(name) for name in list(tensors) if name.startswith(OBS)}
        return cls(obs=obs, state=torch.zeros(1, 0), **tensors)

    def tensors(self) -> list[Tensor]:
        """All tensors, always in the same order."""
        return [*self.obs.values(), self.first, self.state, *(getattr(self, name) for name in STEP_FIELDS)]

    @property
    def num_trajectories(self) -> int:
        return self.first.shape[1]

    @property
    def num_samples(self) -> int:
        return self.reward.numel()

    def acts(self) -> Tensor | None:
        """[T+1, B] bool: whether the agent has anything to choose, by its action mask. None: always."""
        mask = self.obs.get(ACTION_MASK)
        if mask is None or self.continuous.shape[-1]:
            return None
        return (mask != 0).flatten(2).any(-1)

    def columns(self, index: Tensor) -> Batch:
        """The trajectories at `index` [b]."""
        return Batch(
            obs={key: value.index_select(1, index) for key, value in self.obs.items()},
            first=self.first.index_select(1, index),
            state=self.state.index_select(0, index),
            **{name: getattr(self, name).index_select(1, index) for name in STEP_FIELDS},
        )

    def steps(self, index: Tensor) -> Batch:
        """The steps at `index` [M] of all T x B, as one trajectory [M, 1], for a network without memory.

        To such a network unrelated steps are a trajectory like any other. The last observation is never used.
        """
        with_last = torch.cat((index, index[-1:]))
        return Batch(
            obs={key: value[:-1].flatten(0, 1).index_select(0, with_last)[:, None] for key, value in self.obs.items()},
            first=torch.ones(with_last.shape[0], 1, dtype=torch.bool, device=index.device),
            state=self.state[:1],
            **{name: getattr(self, name).flatten(0, 1).index_select(0, index)[:, None] for name in STEP_FIELDS},
        )
