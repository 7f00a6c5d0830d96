"""The scale of values where one policy is trained on several tasks: PopArt for each task (Hessel et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from sf.envs.tasks.united import TASK
from sf.model.normalizers import NoReturnNormalizer, ReturnNormalizer, ReturnScale, SymlogReturns


class TaskReturns(nn.Module):
    """A `ReturnNormalizer` for each of n tasks. The critic has n values, of which a row takes that of its task.

    So a task with large rewards does not drown the others in the loss, and its statistics do not move their values.
    """

    def __init__(self, num_tasks: int) -> None:
        super().__init__()
        self.tasks = nn.ModuleList(ReturnNormalizer() for _ in range(num_tasks))

    def value(self, values: Tensor, task: Tensor) -> Tensor:
        """Values [M, n] of all tasks, and the task of each row [M, n], one-hot -> [M]."""
        return (values * task).sum(-1)

    def scale(self, task: Tensor) -> ReturnScale:
        """Returns the present statistics of each row. task: [..., n] one-hot; the statistics are [...]."""
        scales = [normalizer.scale() for normalizer in self._normalizers]
        one_hot = task.double()
        return ReturnScale(*((one_hot * torch.stack(numbers)).sum(-1) for numbers in zip(*scales, strict=True)))

    @torch.no_grad()
    def update(self, returns: Tensor, mask: Tensor, head: nn.Linear, task: Tensor) -> None:
        """Merge the value targets [T, B] for which `mask` holds, each into the statistics of its task.

        head: gives the value of each task, whose predictions in the scale of returns stay the same: its row is rescaled
        as `ReturnNormalizer` does. task: [T, B, n] one-hot.
        """
        is_task = task.unbind(-1)
        moved = [part.merge(returns, mask & (of != 0)) for part, of in zip(self._normalizers, is_task, strict=True)]
        ratio, shift = (torch.stack(numbers) for numbers in zip(*moved, strict=True))  # [n]
        head.weight.mul_(ratio[:, None])
        head.bias.copy_(head.bias * ratio + shift)

    @property
    def _normalizers(self) -> list[ReturnNormalizer]:
        return cast("list[ReturnNormalizer]", list(self.tasks))


ValueNorm = ReturnNormalizer | SymlogReturns | NoReturnNormalizer | TaskReturns


def scale_of(value_norm: Any, obs: Mapping[str, Tensor]) -> Any:
    """Returns what converts the values of these rows between the scale of returns and that of the critic.

    It has `normalize` and `denormalize`. obs: {key: [..., ...]}, what the values [...] are of. Statistics are computed
    once, so ask once for several conversions.
    """
    if isinstance(value_norm, TaskReturns):
        return value_norm.scale(obs[TASK])
    return value_norm.scale() if isinstance(value_norm, ReturnNormalizer) else value_norm


def advantage_scale(value_norm: Any, obs: Mapping[str, Tensor]) -> Tensor | None:
    """Returns what the advantages of these rows are multiplied by, [T, B], so that those of all tasks are alike; None
    if they stay in the scale of returns.

    That is the scale of the values (Hessel et al. 2019, equation 6). 0 before the first statistics of a task: its
    policy waits until its scale is known. obs: {key: [T+1, B, ...]}.
    """
    return value_norm.scale(obs[TASK][:-1]).inverse if isinstance(value_norm, TaskReturns) else None


def update_value_norm(network: Any, returns: Tensor, mask: Tensor, obs: Mapping[str, Tensor]) -> None:
    """Merge value targets [T, B] into the statistics of a network, where `mask` holds. obs: {key: [T+1, B, ...]}."""
    if isinstance(network.value_norm, TaskReturns):
        network.update_value_norm(returns, mask, obs[TASK][:-1])
    else:
        network.update_value_norm(returns, mask)
