"""Attention of each step of a trajectory to the steps before it, in a window that ends where its episode begins.

The last T of K keys are those of the steps themselves, and the others those of the steps before them, the latest last.
A window of W steps has the step itself and the W - 1 before it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.layers import compute_dtype, orthogonal


def visible(first: Tensor, num_known: Tensor, window: int) -> Tensor:
    """Returns which of W + T keys each step may see, [B, T, W + T] bool.

    first: [T, B], where an episode begins; num_known: [B], how many of the W steps before step 0, the latest ones,
    belong to the episode that is under way there.
    """
    episode = first.cumsum(0).t()  # [B, T], counted from the one that is under way
    is_known = known(num_known, window)
    of_keys = torch.cat((torch.where(is_known, 0, -1), episode), dim=1)  # [B, W + T]; -1: of none
    distance = distances(len(first), window + len(first), first.device)
    is_near = (distance >= 0) & (distance < window)  # [T, W + T]
    return is_near & (of_keys.unsqueeze(1) == episode.unsqueeze(2))


def known(num_known: Tensor, window: int) -> Tensor:
    """Returns which of W steps are the `num_known` [B] last ones, [B, W] bool."""
    return torch.arange(window, device=num_known.device) >= window - num_known.unsqueeze(-1)


def distances(num_steps: int, num_keys: int, device: torch.device) -> Tensor:
    """Returns how many steps each key is before each step, [T, K]; negative after it."""
    steps = torch.arange(num_keys - num_steps, num_keys, device=device)
    return steps.unsqueeze(1) - torch.arange(num_keys, device=device)


class WindowAttention(nn.Module):
    """Attention with several heads (Vaswani et al. 2017), and a learned bias of each head for each distance.

    The bias is that of Raffel et al. 2020 ("Exploring the limits of transfer learning", section 2.1), for each distance
    of its own. So a key has no position in it, and stays what it is while its step grows older.
    """

    def __init__(self, width: int, num_heads: int, window: int) -> None:
        super().__init__()
        self._num_heads = num_heads
        self.project = orthogonal(nn.Linear(width, 3 * width), 1.0)
        self.out = orthogonal(nn.Linear(width, width), 1.0)
        self.bias = nn.Parameter(torch.zeros(num_heads, window))

    def projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, T, D] -> queries, keys and values, each [B, T, D]."""
        query, key, value = self.project(x).chunk(3, dim=-1)
        return query, key, value

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, is_visible: Tensor) -> Tensor:
        """query [B, T, D], keys and values [B, K, D] of the same dtype, is_visible [B, T, K] -> [B, T, D]."""
        distance = distances(query.shape[1], keys.shape[1], query.device).clamp(0, self.bias.shape[1] - 1)
        bias = self.bias.to(query.dtype)[:, distance].masked_fill(~is_visible.unsqueeze(1), -torch.inf)
        by_head = self._by_head(query), self._by_head(keys), self._by_head(values)
        seen = F.scaled_dot_product_attention(*by_head, attn_mask=bias)
        out: Tensor = self.out(seen.transpose(1, 2).flatten(2).to(compute_dtype(self.out.weight)))
        return out

    def _by_head(self, x: Tensor) -> Tensor:
        """[B, K, D] -> [B, heads, K, D / heads]."""
        return x.unflatten(-1, (self._num_heads, -1)).transpose(1, 2)
