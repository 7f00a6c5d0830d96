"""A gated transformer over trajectories with episodes that begin inside them.

y = x gated with relu(attention(norm(x)))           GTrXL, Parisotto et al. 2019 ("Stabilizing transformers for
out = y gated with relu(mlp(norm(y)))               reinforcement learning"): norms on the way into each part alone,
                                                    and in the place of residual connections a gate as a GRU's
r = sigmoid(W_r y + U_r x)                          x gated with y, equation 8 and figure 2. b is 2 at first, so that
z = sigmoid(W_z y + U_z x - b)                      a new layer hands on most of what comes in and a policy can react
n = tanh(W_n y + U_n (r * x))                       before it has learned to remember
(1 - z) * x + z * n

The state of an actor has the keys and values of its last W steps, of each layer, so that acting computes one row.
Training sees them as the context of a trajectory: behind it, as in Transformer-XL (Dai et al. 2019), no gradient flows.
They were computed by the policy that acted, as the state of any core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.cores.attention import WindowAttention, known, visible
from sf.model.layers import compute_dtype, orthogonal

GATE_BIAS = 2.0
_WIDENED = 2  # the hidden layer between two gates, beside the width of the core


class Transformer(nn.Module):
    """The core. Its state [N, W L 2 H + 1] is float32 whatever the dtype of the products.

    It has a row for each of the last W steps, the latest last, with a key and a value of each layer. Behind the rows
    stands how many of them are known. A state of zeros knows nothing.
    """

    def __init__(self, in_size: int, width: int, *, num_layers: int, num_heads: int, window: int) -> None:
        super().__init__()
        self.out_size = width
        self._row = (num_layers, 2, width)
        self._window = window
        self.state_size = window * math.prod(self._row) + 1
        self.embed = orthogonal(nn.Linear(in_size, width), 1.0)
        self.layers = nn.ModuleList(_Layer(width, num_heads, window) for _ in range(num_layers))

    def step(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, in], state [N, S], first [N] -> output [N, H], next state [N, S]."""
        # A state is large: it is copied once, a row further, and the layers write into and read from the copy.
        added = state.new_zeros(state.shape[0], math.prod(self._row))
        next_state = torch.cat((state[:, added.shape[1] : -1], added, state[:, -1:]), dim=-1)
        next_state[first] = 0.0  # also where it is NaN
        num_known = self._num_known(next_state) + 1
        next_state[:, -1] = num_known.clamp(max=self._window)
        is_visible, rows = known(num_known, self._window).unsqueeze(1), self._rows(next_state)
        h = self._embedded(x).unsqueeze(1)  # [N, 1, H]
        for idx, layer in enumerate(self._each_layer()):
            query, rows[:, -1:, idx, 0], rows[:, -1:, idx, 1] = layer.projected(h)
            h = layer(h, query.to(state.dtype), rows[:, :, idx, 0], rows[:, :, idx, 1], is_visible)
        return h.squeeze(1), next_state

    def unroll(self, x: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """x [T, B, in], state [B, S], first [T, B] -> output [T, B, H]."""
        state = torch.where(first[0].unsqueeze(-1), 0.0, state.detach())  # also where it is NaN
        is_visible, rows = visible(first, self._num_known(state), self._window), self._rows(state)
        h = self._embedded(x).transpose(0, 1)  # [B, T, H]
        for idx, layer in enumerate(self._each_layer()):
            query, *own = layer.projected(h)
            context = rows[:, :, idx].to(query.dtype).unbind(2)
            keys, values = (torch.cat(both, dim=1) for both in zip(context, own, strict=True))  # [B, W + T, H]
            h = layer(h, query, keys, values, is_visible)
        return h.transpose(0, 1)

    def _each_layer(self) -> Iterator[_Layer]:
        return iter(self.layers)  # type: ignore[arg-type]  # a ModuleList does not say what it holds

    def _embedded(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., H], float32 or wider."""
        h: Tensor = self.embed(x.to(compute_dtype(self.embed.weight)))
        return h.to(torch.promote_types(torch.float32, h.dtype))

    def _num_known(self, state: Tensor) -> Tensor:
        return state[:, -1].clamp(min=0).round()

    def _rows(self, state: Tensor) -> Tensor:
        """[B, S] -> [B, W, L, 2, H], in the same memory."""
        return state[:, :-1].unflatten(1, (self._window, *self._row))


class _Layer(nn.Module):
    def __init__(self, width: int, num_heads: int, window: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = WindowAttention(width, num_heads, window)
        self.widen = orthogonal(nn.Linear(width, _WIDENED * width))
        self.narrow = orthogonal(nn.Linear(_WIDENED * width, width), 1.0)
        self.gate_1, self.gate_2 = _Gate(width), _Gate(width)

    def projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, T, H] -> queries, keys and values, each [B, T, H]."""
        return self.attention.projected(_normal(x, self.norm_1))

    def forward(self, x: Tensor, query: Tensor, keys: Tensor, values: Tensor, is_visible: Tensor) -> Tensor:
        """x [B, T, H] and what comes out are float32; for the others see `WindowAttention`."""
        y = self.gate_1(x, self.attention(query, keys, values, is_visible).relu())
        return self.gate_2(y, self.narrow(self.widen(_normal(y, self.norm_2)).relu()).relu())


class _Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.new = orthogonal(nn.Linear(width, 3 * width), 1.0)  # W_r, W_z, W_n
        self.old = orthogonal(nn.Linear(width, 2 * width, bias=False), 1.0)  # U_r, U_z
        self.reset = orthogonal(nn.Linear(width, width, bias=False), 1.0)  # U_n
        with torch.no_grad():
            self.new.bias[width : 2 * width] = -GATE_BIAS

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x [..., H] float32, y [..., H] -> [..., H] float32."""
        dtype = compute_dtype(self.new.weight)
        r, z, n = self.new(y.to(dtype)).to(x.dtype).chunk(3, dim=-1)
        old_r, old_z = self.old(x.to(dtype)).to(x.dtype).chunk(2, dim=-1)
        n = torch.tanh(n + self.reset((torch.sigmoid(r + old_r) * x).to(dtype)).to(x.dtype))
        return torch.lerp(x, n, torch.sigmoid(z + old_z))


def _normal(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Returns x normalised over its last axis, in the dtype of the products."""
    weight, bias = norm.weight.to(x.dtype), norm.bias.to(x.dtype)
    return F.layer_norm(x, norm.normalized_shape, weight, bias, norm.eps).to(compute_dtype(norm.weight))
