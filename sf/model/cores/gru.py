"""A gated recurrent unit over trajectories with episodes that begin inside them.

r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)          the equations of torch.nn.GRUCell (Cho et al. 2014)
z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
h' = (1 - z) * n + z * h,  where h is 0 at the first step of an episode

Over T steps, the input's share is one product, the loop does only what depends on h, and the backward pass
collects the gradients of the gates for one product as well. Under autograd the loop would add T gradients of
W_h, each rounded to bfloat16 in mixed precision, and take longer.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.cores import unrolling
from sf.model.cores.unrolling import add_product, blocks_from_the_end, sigmoid_backward, tanh_backward
from sf.model.layers import Compilable, compute_dtype, make_orthogonal


class GRU(Compilable):
    """The recurrent core. Its state [N, H] is float32 whatever the dtype of the products."""

    def __init__(self, in_size: int, hidden_size: int) -> None:
        super().__init__()
        self.out_size = hidden_size
        self.state_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, in_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.zeros(3 * hidden_size))
        self.bias_hh = nn.Parameter(torch.zeros(3 * hidden_size))
        for gate in (*self.weight_ih.chunk(3), *self.weight_hh.chunk(3)):
            make_orthogonal(gate)

    def step(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, in], state [N, H], first [N] -> output [N, H], next state [N, H]."""
        h = torch.where(first.unsqueeze(-1), 0.0, state)  # also where it is NaN
        dtype = compute_dtype(self.weight_ih)
        x_gates = F.linear(x.to(dtype), self.weight_ih, self.bias_ih)
        h_gates = F.linear(h.to(dtype), self.weight_hh, self.bias_hh)
        if self.with_loops and unrolling.has_loops(x_gates, state) and not torch.is_grad_enabled():
            h = unrolling.gru_step(x_gates, h_gates, h)
        else:
            h = _cell(x_gates.to(h.dtype), h_gates.to(h.dtype), h)
        return h, h

    def unroll(self, x: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """x [T, B, in], state [B, H], first [T, B] -> output [T, B, H]."""
        x_gates = F.linear(x.to(compute_dtype(self.weight_ih)), self.weight_ih, self.bias_ih)  # [T, B, 3H]
        unroll = unrolling.GRUUnroll if self.with_loops and unrolling.has_loops(x_gates, state) else _Unroll
        return unroll.apply(x_gates, state, first, self.weight_hh, self.bias_hh)


def _cell(x_gates: Tensor, h_gates: Tensor, h: Tensor) -> Tensor:
    """Gates [N, 3H] in the order r, z, n and h [N, H] -> h'."""
    hidden = h.shape[-1]
    r, z = torch.add(x_gates[:, : 2 * hidden], h_gates[:, : 2 * hidden]).sigmoid_().chunk(2, dim=1)
    n = torch.addcmul(x_gates[:, 2 * hidden :], r, h_gates[:, 2 * hidden :]).tanh_()
    return torch.lerp(n, h, z)


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, state: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        (num_steps, batch, _), hidden = x_gates.shape, state.shape[1]
        weight_t = weight.to(x_gates.dtype).t()  # [H, 3H]
        first, zero = first.unsqueeze(-1), state.new_zeros(())  # [T, B, 1]
        # Of each step: what h comes in as, the gates, of which n's share is h's alone, then n and what h goes out as.
        h_in, gates = state.new_empty(num_steps, batch, hidden), state.new_empty(num_steps, batch, 3 * hidden)
        n, out = state.new_empty(num_steps, batch, hidden), state.new_empty(num_steps, batch, hidden)
        # The dtypes are set here, once and for all.
        with torch.autocast(x_gates.device.type, enabled=False):
            x, h = x_gates.to(state.dtype), state
            for t in range(num_steps):
                torch.where(first[t], zero, h, out=h_in[t])  # also where it is NaN
                add_product(bias, h_in[t], weight_t, out=gates[t])
                rz, h_new = gates[t, :, : 2 * hidden], gates[t, :, 2 * hidden :]
                rz.add_(x[t, :, : 2 * hidden]).sigmoid_()
                torch.addcmul(x[t, :, 2 * hidden :], rz[:, :hidden], h_new, out=n[t]).tanh_()
                h = torch.lerp(n[t], h_in[t], rz[:, hidden:], out=out[t])
        ctx.save_for_backward(h_in, gates, n, first, weight)
        ctx.compute_dtype = x_gates.dtype
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor, Tensor]:
        (grad_out,) = grads
        h_in, gates, n, first, weight = ctx.saved_tensors
        num_steps, batch, hidden = h_in.shape
        with torch.autocast(grad_out.device.type, enabled=False):
            w = weight.to(ctx.compute_dtype)
            grad_h = torch.zeros_like(h_in[0])
            grad_x_gates = torch.empty_like(gates, dtype=w.dtype)
            grad_gates = torch.empty_like(gates, dtype=w.dtype)
            for block in blocks_from_the_end(h_in):
                r, z, h_new = gates[block].chunk(3, dim=-1)
                # All that does not depend on the gradient of h': d(gates before their activation) / dh', [k, B, 3H].
                by_n = tanh_backward(1 - z, n[block])
                by_z = sigmoid_backward(h_in[block] - n[block], z)
                by_h = torch.cat((sigmoid_backward(by_n * h_new, r), by_z, by_n * r), dim=-1)
                for t in range(block.stop - 1, block.start - 1, -1):
                    k = t - block.start
                    grad_h = grad_h + grad_out[t]
                    by_gate = grad_gates[t].view(batch, 3, hidden)
                    torch.mul(by_h[k].view(batch, 3, hidden), grad_h.unsqueeze(1), out=by_gate)
                    grad_x_gates[t, :, : 2 * hidden] = grad_gates[t, :, : 2 * hidden]
                    torch.mul(by_n[k], grad_h, out=grad_x_gates[t, :, 2 * hidden :])
                    grad_h = torch.addcmul(grad_gates[t] @ w, grad_h, z[k]).masked_fill_(first[t], 0.0)
            flat_gates = grad_gates.view(num_steps * batch, 3 * hidden)
            grad_weight = flat_gates.t() @ h_in.view(num_steps * batch, hidden).to(w.dtype)
            grad_bias = flat_gates.sum(0, dtype=h_in.dtype)
        return grad_x_gates, grad_h, None, grad_weight.to(weight.dtype), grad_bias.to(weight.dtype)
