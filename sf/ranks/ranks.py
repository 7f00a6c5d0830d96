"""What the learners of one policy have in common: sums over the samples of all, and the gradients of all.

Whatever a step takes over samples is a sum divided by another: the loss, the moments of advantages, observations and
returns, and the metrics. With the sums of all ranks in place of its own, each rank does what one learner with all
samples would do, and their weights stay the same.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn


class Ranks:
    """One learner alone.

    rank: from 0 to size - 1.
    """

    rank = 0
    size = 1

    def totals(self, *sums: Tensor) -> list[Tensor]:
        """The sums of all ranks, element by element, in one message. sums: of any shapes; they carry no gradients."""
        return list(sums)

    def all_agree(self, yes: bool) -> bool:
        """Whether all ranks say so."""
        return yes

    def joined(self, network: nn.Module) -> nn.Module:
        """The same network, whose gradients after a backward pass are the mean of those of all ranks.

        All ranks begin with the weights of the first.
        """
        return network


ALONE = Ranks()


class DistributedRanks(Ranks):
    """The ranks of a process group of torch.distributed, which must do the same calls in the same order.

    Gradients are averaged in buckets while the backward pass goes on (Li et al. 2020, "PyTorch Distributed: Experiences
    on Accelerating Data Parallel Training", section 3.2).
    """

    def __init__(self, device: torch.device, group: torch.distributed.ProcessGroup | None = None) -> None:
        """device: of what is sent. group: None for the default one."""
        self._device = device
        self._group = group
        self.rank = torch.distributed.get_rank(group)
        self.size = torch.distributed.get_world_size(group)

    @torch.no_grad()
    def totals(self, *sums: Tensor) -> list[Tensor]:
        message = torch.cat([each.detach().double().flatten() for each in sums])
        torch.distributed.all_reduce(message, group=self._group)
        parts = message.split([each.numel() for each in sums])
        return [part.view(each.shape).to(each.dtype) for part, each in zip(parts, sums, strict=True)]

    def all_agree(self, yes: bool) -> bool:
        (num_against,) = self.totals(torch.tensor(0.0 if yes else 1.0, device=self._device))
        return not num_against

    def joined(self, network: nn.Module) -> nn.Module:
        options: dict[str, Any] = {} if self._device.type == "cpu" else {"device_ids": [self._device]}
        # Statistics are the same on all ranks in any case: nothing has to be sent before a forward pass.
        return nn.parallel.DistributedDataParallel(
            network, process_group=self._group, broadcast_buffers=False, **options
        )
