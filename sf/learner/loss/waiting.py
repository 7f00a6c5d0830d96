"""Steps in which an agent waits for its turn, and has nothing to choose.

No action is taken there, so there is no advantage, and the value is needed only to get from one decision to the next.
What comes after it is as good an estimate, and needs no network. So trajectories are looked at as if they had only
decisions: what is paid while an agent waits belongs to its last one.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
