"""Which samples count, and means over them: every number that a loss takes over several samples is one of these.

No action is taken in a step in which an agent waits for its turn, so there is no advantage, and the value is needed
only to get from one decision to the next. What comes after it is as good an estimate, and needs no network. So
trajectories are looked at as if they had only decisions: what is paid while an agent waits belongs to its last one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sf.ranks.ranks import Ranks

_LEAST_WEIGHT = 1e-30  # of all samples together: gradients of 0 x NaN would be NaN


class MaskedMean:
    """The mean of the numbers for which `mask` holds; 0 where it holds for none.

    With several ranks it is the mean over the samples of all, and a call gives the part of this one: its sum divided by
    the weight of all. So the parts of all ranks add up to the mean, and so do their gradients. It needs `share_out`.

    num_samples: 0-dim, for how many it holds.
    """

    def __init__(self, mask: Tensor, dtype: torch.dtype, weight: Tensor | None = None) -> None:
        """mask: [T, B] bool. dtype: of the numbers. weight: [T, B], of each in the mean; None: all have the same."""
        self._mask = mask
        self._weight = weight
        self.num_samples = mask.sum().to(dtype)
        self.total_weight = self.num_samples if weight is None else torch.where(mask, weight, 0.0).sum()

    def sum(self, numbers: Tensor) -> Tensor:
        """[T, B] -> 0-dim, with the weight of each, over the samples of this rank."""
        if self._weight is not None:
            numbers = numbers * self._weight
        return torch.where(self._mask, numbers, 0.0).sum()

    def __call__(self, numbers: Tensor) -> Tensor:
        """[T, B] -> 0-dim. The other numbers get no gradient."""
        return self.sum(numbers) / self.total_weight.clamp(min=_LEAST_WEIGHT)


def share_out(ranks: Ranks, means: Sequence[MaskedMean]) -> None:
    """Make these the means over the samples of all ranks."""
    of_all = iter(ranks.totals(*(number for mean in means for number in (mean.num_samples, mean.total_weight))))
    for mean in means:
        mean.num_samples, mean.total_weight = next(of_all), next(of_all)


@torch.no_grad()
def has_outcome(acts: Tensor, terminated: Tensor, valid: Tensor) -> Tensor:
    """[T, B] bool: whether a step is a decision that the trajectory shows the outcome of.

    That is the end of the episode, the next decision, or the observation from which a truncated episode is
    bootstrapped, if the agent acts there. All others lack a value to be bootstrapped from: that of an agent which
    waits is never trained.

    acts: [T+1, B] bool, whether the agent chooses; terminated, valid: [T, B] bool.
    """
    assert acts.shape == (valid.shape[0] + 1, valid.shape[1]), acts.shape
    is_known = torch.empty_like(acts)  # the value after step t - 1
    is_known[-1] = acts[-1]
    for t in range(len(valid) - 1, -1, -1):
        is_known[t] = acts[t] | (valid[t] & (terminated[t] | is_known[t + 1]))
    return acts[:-1] & (terminated | is_known[1:])


@torch.no_grad()
def value_across(value: Tensor, reward: Tensor, discount: Tensor, valid: Tensor, acts: Tensor) -> Tensor:
    """Values [T+1, B] in which those of an agent that waits are r_t + discount_t V_{t+1}.

    value: [T+1, B]; reward, discount, valid: [T, B]; acts: [T+1, B]. Invalid steps keep theirs: truncated episodes are
    bootstrapped from them.
    """
    keeps = acts[:-1] | ~valid
    across = value.clone()
    for t in range(len(reward) - 1, -1, -1):
        across[t] = torch.where(keeps[t], value[t], reward[t] + discount[t] * across[t + 1])
    return across
