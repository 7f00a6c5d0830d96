"""Attention of each step of a trajectory to the steps before it, in a window that ends where its episode begins.

The keys of a trajectory's T steps stand behind those of its context, the C steps before it: key c < C is that of step
c - C, and key C + s that of step s. A window of W steps has the step itself and the C = W - 1 before it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.layers import compute_dtype, orthogonal


def visible(first: Tensor, num_known: Tensor, num_context: int) -> Tensor:
    """Returns which keys each step may see, [B, T, C + T] bool.

    first: [T, B], where an episode begins; num_known: [B], how many of the C context steps, the latest ones, belong to
    the episode that is under way before step 0.
    """
    context = torch.arange(num_context, device=first.device)
    episode = first.cumsum(0).t()  # [B, T], counted from the one that is under way
    is_known = context >= num_context - num_known.unsqueeze(-1)  # [B, C]
    # A key of the context that is not known belongs to no episode.
    of_keys = torch.cat((torch.where(is_known, 0, -1), episode), dim=1)  # [B, C + T]
    distance = distances(len(first), num_context, first.device)
    is_near = (distance >= 0) & (distance <= num_context)  # [T, C + T]
    return is_near & (of_keys.unsqueeze(1) == episode.unsqueeze(2))


def distances(num_steps: int, num_context: int, device: torch.device) -> Tensor:
    """Returns how many steps each key is before each step, [T, C + T]; negative after it."""
    steps = torch.arange(num_steps, device=device).unsqueeze(1) + num_context
    return steps - torch.arange(num_context + num_steps, device=device)


class WindowAttention(nn.Module):
    """Attention with several heads (Vaswani et al. 2017), and a learned bias of each head for each distance.

    The bias is that of Raffel et al. 2020 ("Exploring the limits of transfer learning", section 2.1), for each distance
    of its own. So a key has no position in it, and stays what it is while its step grows older.
    """

    def __init__(self, width: int, num_heads: int, window: int) -> None:
        super().__init__()
        self._num_heads = num_heads
        self.project = orthogonal(nn.Linear(width, 3 * width), 1.0)  # query, key and value
        self.out = orthogonal(nn.Linear(width, width), 1.0)
        self.bias = nn.Parameter(torch.zeros(num_heads, window))

    def forward(self, x: Tensor, context: Tensor, is_visible: Tensor) -> tuple[Tensor, Tensor]:
        """x [T, B, D], context [B, 2, C, D], is_visible [B, T, C + T] -> output [T, B, D], keys and values [B, 2, T, D].

        context: the keys and values of the steps before; no gradient flows into it.
        """
        (num_steps, _, width), num_context = x.shape, context.shape[2]
        query, key, value = self.project(x).transpose(0, 1).split(width, dim=-1)  # [B, T, D] each
        own = torch.stack((key, value), dim=1)  # [B, 2, T, D]
        keys, values = torch.cat((context.to(own.dtype), own), dim=2).unbind(1)  # [B, C + T, D] each
        distance = distances(num_steps, num_context, x.device).clamp(0, num_context)
        bias = self.bias.to(own.dtype)[:, distance].masked_fill(~is_visible.unsqueeze(1), -torch.inf)
        seen = F.scaled_dot_product_attention(*map(self._by_head, (query, keys, values)), attn_mask=bias)
        out: Tensor = self.out(seen.permute(2, 0, 1, 3).flatten(2).to(compute_dtype(self.out.weight)))
        return out, own

    def _by_head(self, x: Tensor) -> Tensor:
        """[B, K, D] -> [B, heads, K, D / heads]."""
        return x.unflatten(-1, (self._num_heads, -1)).transpose(1, 2)
