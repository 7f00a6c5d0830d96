"""A long short-term memory over trajectories with episodes that begin inside them.

i, f, o = sigmoid(W_i x + b_i + W_h h + b_h)        the equations of torch.nn.LSTMCell (Hochreiter and
g = tanh(W_ig x + b_ig + W_hg h + b_hg)             Schmidhuber 1997, with forget gates)
c' = f * c + i * g
h' = o * tanh(c'),  where h and c are 0 at the first step of an episode

Products are grouped over T steps in both directions, for the reasons in `sf.model.gru`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sf.model.layers import compute_dtype


class LSTM(nn.Module):
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
            nn.init.orthogonal_(gate)
        # It remembers until it has learnt to forget (Jozefowicz et al. 2015).
        nn.init.ones_(self.bias_ih.chunk(4)[1])

    def step(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, in], state [N, 2H], first [N] -> output [N, H], next state [N, 2H]."""
        h, c = torch.where(first.unsqueeze(-1), 0.0, state).chunk(2, dim=-1)  # also where it is NaN
        dtype = compute_dtype(self.weight_ih)
        x_gates = F.linear(x.to(dtype), self.weight_ih, self.bias_ih).to(h.dtype)
        h_gates = F.linear(h.to(dtype), self.weight_hh, self.bias_hh).to(h.dtype)
        h, c = _cell(x_gates, h_gates, c)[:2]
        return h, torch.cat((h, c), dim=-1)

    def unroll(self, x: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """x [T, B, in], state [B, 2H], first [T, B] -> output [T, B, H]."""
        x_gates = F.linear(x.to(compute_dtype(self.weight_ih)), self.weight_ih, self.bias_ih)  # [T, B, 4H]
        return _Unroll.apply(x_gates, state, first, self.weight_hh, self.bias_hh)


def _cell(x_gates: Tensor, h_gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gates [N, 4H] in the order i, f, g, o and c [N, H] -> h', c', tanh(c'), sigmoid of all gates, g."""
    hidden = c.shape[-1]
    gates = x_gates + h_gates
    g = gates[:, 2 * hidden : 3 * hidden].tanh()
    i, f, _, o = gates.sigmoid_().chunk(4, dim=-1)
    c = torch.addcmul(f * c, i, g)
    tanh_c = c.tanh()
    return o * tanh_c, c, tanh_c, gates, g


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, state: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        weight_t = weight.to(x_gates.dtype).t()  # [H, 4H]
        keep = (~first).to(state.dtype).unsqueeze(-1)  # [T, B, 1]
        (h, c), steps = state.chunk(2, dim=-1), []
        # The dtypes are set here, once and for all.
        with torch.autocast(x_gates.device.type, enabled=False):
            for x, k in zip(x_gates.to(state.dtype), keep, strict=True):
                h_in, c_in = h * k, c * k
                product = h_in.to(weight_t.dtype) @ weight_t
                h, c, tanh_c, gates, g = _cell(x, product.to(h.dtype) + bias, c_in)
                steps.append((h, h_in, c_in, tanh_c, gates, g))
        out, h_in, c_in, tanh_c, gates, g = (torch.stack(tensors) for tensors in zip(*steps, strict=True))
        ctx.save_for_backward(h_in, c_in, tanh_c, gates, g, keep, weight)
        ctx.compute_dtype = x_gates.dtype
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor, Tensor]:
        (grad_out,) = grads
        h_in, c_in, tanh_c, gates, g, keep, weight = ctx.saved_tensors
        num_steps, batch, hidden = h_in.shape
        i, f, _, o = gates.chunk(4, dim=-1)
        with torch.autocast(grad_out.device.type, enabled=False):
            # All that does not depend on the gradients of h' and c', for all steps at once.
            c_by_h = o * (1 - tanh_c * tanh_c)  # dc' / dh'
            ifg_by_c = torch.stack((g * i * (1 - i), c_in * f * (1 - f), i * (1 - g * g)), dim=2)  # [T, B, 3, H]
            o_by_h = tanh_c * o * (1 - o)
            w = weight.to(ctx.compute_dtype)
            grad_h, grad_c = torch.zeros_like(h_in[0]), torch.zeros_like(h_in[0])
            grad_gates = torch.empty_like(gates, dtype=w.dtype)
            for t in range(num_steps - 1, -1, -1):
                grad_h = grad_h + grad_out[t]
                grad_c = torch.addcmul(grad_c, grad_h, c_by_h[t])
                by_gate = grad_gates[t].view(batch, 4, hidden)
                by_gate[:, :3] = ifg_by_c[t] * grad_c.unsqueeze(1)
                by_gate[:, 3] = o_by_h[t] * grad_h
                grad_h = (grad_gates[t] @ w).to(keep.dtype) * keep[t]
                grad_c = grad_c * f[t] * keep[t]
            flat_gates = grad_gates.view(num_steps * batch, 4 * hidden)
            grad_weight = flat_gates.t() @ h_in.view(num_steps * batch, hidden).to(w.dtype)
            grad_bias = flat_gates.sum(0, dtype=h_in.dtype)
        return (
            grad_gates,
            torch.cat((grad_h, grad_c), dim=-1),
            None,
            grad_weight.to(weight.dtype),
            grad_bias.to(weight.dtype),
        )
