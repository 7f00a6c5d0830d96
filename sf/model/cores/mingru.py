"""A minimal gated recurrent unit, whose gates depend on the input alone, over trajectories with episodes inside them.

z = sigmoid(W_z x + b_z)                            Feng et al. 2024, "Were RNNs all we needed?", section 3.1,
n = g(W_n x + b_n)                                  and appendix B.2 for g, which keeps the state positive:
h' = (1 - z) * h + z * n,  where h is 0 at the      g(a) = a + 1/2 for a >= 0, and sigmoid(a) below
     first step of an episode

No product waits for the step before, so all gates are one product over T steps, and what is left is a linear
recurrence. The paper computes it by a parallel scan in log space; on a CPU one pass over the steps reads each number
once and is several times as fast, so it is done so here. It also cuts the recurrence exactly where an episode begins.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.cores import unrolling
from sf.model.cores.unrolling import sigmoid_backward
from sf.model.layers import Compilable, compute_dtype, make_orthogonal

LONGEST = 64.0  # steps that a new unit remembers at most: a trajectory with a recurrent core has this many


class MinGRU(Compilable):
    """The recurrent core. Its state [N, H] is float32 whatever the dtype of the products."""

    def __init__(self, in_size: int, hidden_size: int) -> None:
        super().__init__()
        self.out_size = hidden_size
        self.state_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(2 * hidden_size, in_size))
        self.bias_ih = nn.Parameter(torch.zeros(2 * hidden_size))
        for gate in self.weight_ih.chunk(2):
            make_orthogonal(gate)
        # Units begin with horizons of 2 to 64 steps (Tallec and Ollivier 2018, "Can recurrent neural networks warp
        # time?"): z cannot learn from h what is worth keeping.
        horizons = torch.logspace(math.log2(2.0), math.log2(LONGEST), hidden_size, base=2.0)
        with torch.no_grad():
            self.bias_ih[:hidden_size] = -torch.log(horizons - 1.0)

    def step(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, in], state [N, H], first [N] -> output [N, H], next state [N, H]."""
        gates, first = self._gates(x.unsqueeze(0)), first.unsqueeze(0)
        if self.with_loops and unrolling.has_loops(gates, state):
            h = unrolling.MinGRUUnroll.apply(gates, state, first)[0]
        else:
            h = _forward(gates.to(state.dtype), state, first)[-1][0]
        return h, h

    def unroll(self, x: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """x [T, B, in], state [B, H], first [T, B] -> output [T, B, H]."""
        gates = self._gates(x)
        unroll = unrolling.MinGRUUnroll if self.with_loops and unrolling.has_loops(gates, state) else _Unroll
        return unroll.apply(gates, state, first)

    def _gates(self, x: Tensor) -> Tensor:
        """[T, B, in] -> [T, B, 2H], z and n before their activation."""
        return F.linear(x.to(compute_dtype(self.weight_ih)), self.weight_ih, self.bias_ih)


def _forward(gates: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gates [T, B, 2H], state [B, H], first [T, B] -> z, n, what h comes in as, and h', each [T, B, H]."""
    z, n = gates.chunk(2, dim=-1)
    z, n = z.sigmoid(), torch.where(n >= 0, n + 0.5, n.sigmoid())
    h, h_in, out = state, [], []
    for t in range(len(gates)):
        h_in.append(torch.where(first[t].unsqueeze(-1), 0.0, h))  # also where it is NaN
        h = torch.lerp(h_in[t], n[t], z[t])
        out.append(h)
    return z, n, torch.stack(h_in), torch.stack(out)


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor, first: Tensor) -> Tensor:
        with torch.autocast(gates.device.type, enabled=False):
            z, n, h_in, out = _forward(gates.to(state.dtype), state, first)
        ctx.save_for_backward(z, n, h_in, first)
        ctx.compute_dtype = gates.dtype
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        (grad_out,) = grads
        z, n, h_in, first = ctx.saved_tensors
        grad_h, kept, next_grad = torch.empty_like(h_in), 1 - z, torch.zeros_like(h_in[0])
        for t in range(len(z) - 1, -1, -1):
            torch.add(grad_out[t], next_grad, out=grad_h[t])
            next_grad = (grad_h[t] * kept[t]).masked_fill_(first[t].unsqueeze(-1), 0.0)
        by_z = sigmoid_backward(grad_h * (n - h_in), z)
        # n is at least 1/2 where it is linear, and below that a sigmoid.
        by_n = grad_h * z * torch.where(n >= 0.5, 1.0, n * (1 - n))
        return torch.cat((by_z, by_n), dim=-1).to(ctx.compute_dtype), next_grad, None
