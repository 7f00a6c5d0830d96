"""A gated transformer over trajectories with episodes that begin inside them.

y = x gated with relu(attention(norm(x)))           GTrXL, Parisotto et al. 2019 ("Stabilizing transformers for
out = y gated with relu(mlp(norm(y)))               reinforcement learning"): norms on the way into each part alone,
                                                    and in the place of residual connections a gate as a GRU's
r = sigmoid(W_r y + U_r x)                          x gated with y, equation 8 and figure 2. b is 2 at first, so that
z = sigmoid(W_z y + U_z x - b)                      a new layer hands on most of what comes in and a policy can react
n = tanh(W_n y + U_n (r * x))                       before it has learned to remember
(1 - z) * x + z * n

The state of an actor has the keys and values of its last W - 1 steps, of each layer, so that acting computes one row.
Training sees them as the context of a trajectory: behind it, as in Transformer-XL (Dai et al. 2019), no gradient flows.
They were computed by the policy that acted, as the state of any core.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.layers import compute_dtype, orthogonal
from sf.model.recurrent.attention import WindowAttention, visible

GATE_BIAS = 2.0
_WIDENED = 2  # the hidden layer between two gates, beside the width of the core


class Transformer(nn.Module):
    """The core. Its state [N, 1 + 2 L C H] is float32 whatever the dtype of the products.

    It begins with the number of known steps, then follow the keys and values of C = window - 1 steps for each layer,
    the latest step last. A state of zeros knows nothing.
    """

    def __init__(self, in_size: int, width: int, *, num_layers: int, num_heads: int, window: int) -> None:
        super().__init__()
        self.out_size = width
        self._shape = (num_layers, 2, window - 1, width)  # of the context
        self.state_size = 1 + 2 * num_layers * (window - 1) * width
        self.embed = orthogonal(nn.Linear(in_size, width), 1.0)
        self.layers = nn.ModuleList(_Layer(width, num_heads, window) for _ in range(num_layers))

    def step(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, in], state [N, S], first [N] -> output [N, H], next state [N, S]."""
        out, num_known, context, own = self._forward(x.unsqueeze(0), state, first.unsqueeze(0))
        num_known = (num_known + 1).clamp(max=context.shape[3])
        context = torch.cat((context[:, :, :, 1:], torch.stack(own, dim=1)), dim=3)
        return out[0], torch.cat((num_known.unsqueeze(-1), context.flatten(1)), dim=-1)

    def unroll(self, x: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """x [T, B, in], state [B, S], first [T, B] -> output [T, B, H]."""
        return self._forward(x, state, first)[0]

    def _forward(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        """Returns the output, the known steps [B], the context [B, L, 2, C, H], and what each layer adds to it."""
        state = torch.where(first[0].unsqueeze(-1), 0.0, state.detach())  # also where it is NaN
        num_known, context = state[:, 0].clamp(min=0).round(), state[:, 1:].unflatten(1, self._shape)
        is_visible = visible(first, num_known, context.shape[3])
        h, added = self.embed(x.to(compute_dtype(self.embed.weight))).to(state.dtype), []
        for idx, layer in enumerate(self.layers):
            h, own = layer(h, context[:, idx], is_visible)
            added.append(own.to(state.dtype))
        return h, num_known, context, added


class _Layer(nn.Module):
    def __init__(self, width: int, num_heads: int, window: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = WindowAttention(width, num_heads, window)
        self.widen = orthogonal(nn.Linear(width, _WIDENED * width))
        self.narrow = orthogonal(nn.Linear(_WIDENED * width, width), 1.0)
        self.gate_1, self.gate_2 = _Gate(width), _Gate(width)

    def forward(self, x: Tensor, context: Tensor, is_visible: Tensor) -> tuple[Tensor, Tensor]:
        """See `WindowAttention`. x and what comes out are float32."""
        seen, own = self.attention(_normal(x, self.norm_1), context, is_visible)
        y = self.gate_1(x, seen.relu())
        return self.gate_2(y, self.narrow(self.widen(_normal(y, self.norm_2)).relu()).relu()), own


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
