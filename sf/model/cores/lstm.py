"""A long short-term memory over trajectories with episodes that begin inside them.

i, f, o = sigmoid(W_i x + b_i + W_h h + b_h)        the equations of torch.nn.LSTMCell (Hochreiter and
g = tanh(W_ig x + b_ig + W_hg h + b_hg)             Schmidhuber 1997, with forget gates)
c' = f * c + i * g
h' = o * tanh(c'),  where h and c are 0 at the first step of an episode

Products are grouped over T steps in both directions, for the reasons in `sf.model.cores.gru`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.cores import unrolling
from sf.model.cores.unrolling import add_product, blocks_from_the_end, sigmoid_backward, tanh_backward
from sf.model.layers import Compilable, compute_dtype, make_orthogonal


class LSTM(Compilable):
    """The recurrent core. Its state [N, 2H] is h, then c, in float32 whatever the dtype of the products."""

    def __init__(self, in_size: int, hidden_size: int) -> None:
        super().__init__()
        self.out_size = hidden_size
        self.state_size = 2 * hidden_size
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, in_size))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.zeros(4 * hidden_size))
        self.bias_hh = nn.Parameter(torch.zeros(4 * hidden_size))
        for gate in (*self.weight_ih.chunk(4), *self.weight_hh.chunk(4)):
            make_orthogonal(gate)
        # It remembers until it has learnt to forget (Jozefowicz et al. 2015).
        nn.init.ones_(self.bias_ih.chunk(4)[1])

    def step(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, in], state [N, 2H], first [N] -> output [N, H], next state [N, 2H]."""
        h, c = torch.where(first.unsqueeze(-1), 0.0, state).chunk(2, dim=-1)  # also where it is NaN
        dtype = compute_dtype(self.weight_ih)
        x_gates = F.linear(x.to(dtype), self.weight_ih, self.bias_ih)
        h_gates = F.linear(h.to(dtype), self.weight_hh, self.bias_hh)
        if self.with_loops and unrolling.has_loops(x_gates, state) and not torch.is_grad_enabled():
            h, c = unrolling.lstm_step(x_gates, h_gates, c)
        else:
            h, c = _cell(x_gates.to(h.dtype), h_gates.to(h.dtype), c)
        return h, torch.cat((h, c), dim=-1)

    def unroll(self, x: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """x [T, B, in], state [B, 2H], first [T, B] -> output [T, B, H]."""
        dtype = compute_dtype(self.weight_ih)
        x_gates = F.linear(x.to(dtype), self.weight_ih, self.bias_ih + self.bias_hh)  # [T, B, 4H]
        unroll = unrolling.LSTMUnroll if self.with_loops and unrolling.has_loops(x_gates, state) else _Unroll
        return unroll.apply(x_gates, state, first, self.weight_hh)


def _cell(x_gates: Tensor, h_gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Gates [N, 4H] in the order i, f, g, o and c [N, H] -> h', c'."""
    hidden = c.shape[-1]
    gates = x_gates + h_gates
    g = gates[:, 2 * hidden : 3 * hidden].tanh()
    i, f, _, o = gates.sigmoid_().chunk(4, dim=-1)
    c = torch.addcmul(f * c, i, g)
    return o * c.tanh(), c


def _forward_cell(gates: Tensor, before: Tensor, ends: Tensor, h: Tensor, tanh_c: Tensor, after: Tensor) -> None:
    """gates [B, 4H]: activated in place; before [B, 2H]: h and c; ends [B, 1] bool: whether an episode does.

    Written: h' [B, H], tanh(c') [B, H], and after [B, 2H]: h' and c', or 0 where it ends.
    """
    hidden = h.shape[1]
    i, f, g, o = gates.chunk(4, dim=1)
    gates[:, : 2 * hidden].sigmoid_()
    g.tanh_()
    o.sigmoid_()
    c = torch.addcmul(f * before[:, hidden:], i, g)
    torch.tanh(c, out=tanh_c)
    torch.mul(o, tanh_c, out=h)
    zero = h.new_zeros(())
    torch.where(ends, zero, h, out=after[:, :hidden])
    torch.where(ends, zero, c, out=after[:, hidden:])


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, state: Tensor, first: Tensor, weight: Tensor) -> Tensor:
        (num_steps, batch, _), hidden = x_gates.shape, state.shape[1] // 2
        weight_t = weight.to(x_gates.dtype).t()  # [H, 4H]
        first = torch.cat((first, first.new_zeros(1, batch))).unsqueeze(-1)  # [T + 1, B, 1]
        gates, states = state.new_empty(num_steps, batch, 4 * hidden), state.new_empty(num_steps + 1, batch, 2 * hidden)
        out, tanh_c = state.new_empty(num_steps, batch, hidden), state.new_empty(num_steps, batch, hidden)
        states[0] = torch.where(first[0], 0.0, state)  # also where it is NaN
        # The dtypes are set here, once and for all.
        with torch.autocast(x_gates.device.type, enabled=False):
            x = x_gates.to(state.dtype)
            for t in range(num_steps):
                add_product(x[t], states[t, :, :hidden], weight_t, out=gates[t])
                _forward_cell(gates[t], states[t], first[t + 1], out[t], tanh_c[t], states[t + 1])
        ctx.save_for_backward(states, tanh_c, gates, first, weight)
        ctx.compute_dtype = x_gates.dtype
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor]:
        (grad_out,) = grads
        states, tanh_c, gates, first, weight = ctx.saved_tensors
        num_steps, batch, hidden = tanh_c.shape
        h_in, c_in = states[:-1].chunk(2, dim=-1)
        with torch.autocast(grad_out.device.type, enabled=False):
            w = weight.to(ctx.compute_dtype)
            grad_h, grad_c = torch.zeros_like(tanh_c[0]), torch.zeros_like(tanh_c[0])
            grad_gates = torch.empty_like(gates, dtype=w.dtype)
            for block in blocks_from_the_end(tanh_c):
                i, f, g, o = gates[block].chunk(4, dim=-1)
                # All that does not depend on the gradients of h' and c'.
                c_by_h = tanh_backward(o, tanh_c[block])
                by_c = torch.cat(
                    (sigmoid_backward(g, i), sigmoid_backward(c_in[block], f), tanh_backward(i, g)), dim=-1
                )
                o_by_h = sigmoid_backward(tanh_c[block], o)
                for t in range(block.stop - 1, block.start - 1, -1):
                    k = t - block.start
                    grad_h = grad_h + grad_out[t]
                    grad_c = torch.addcmul(grad_c, grad_h, c_by_h[k])
                    by_gate = grad_gates[t].view(batch, 4, hidden)
                    torch.mul(by_c[k].view(batch, 3, hidden), grad_c.unsqueeze(1), out=by_gate[:, :3])
                    torch.mul(o_by_h[k], grad_h, out=by_gate[:, 3])
                    grad_h = (grad_gates[t] @ w).to(states.dtype).masked_fill_(first[t], 0.0)
                    grad_c = (grad_c * f[k]).masked_fill_(first[t], 0.0)
            flat_gates = grad_gates.view(num_steps * batch, 4 * hidden)
            grad_weight = flat_gates.t() @ h_in.reshape(num_steps * batch, hidden).to(w.dtype)
        return grad_gates, torch.cat((grad_h, grad_c), dim=-1), None, grad_weight.to(weight.dtype)
