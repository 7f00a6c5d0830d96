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

from sf.model.layers import compute_dtype


class GRU(nn.Module):
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
            nn.init.orthogonal_(gate)

    def step(self, x: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """x [N, in], state [N, H], first [N] -> output [N, H], next state [N, H]."""
        h = torch.where(first.unsqueeze(-1), 0.0, state)  # also where it is NaN
        dtype = compute_dtype(self.weight_ih)
        x_gates = F.linear(x.to(dtype), self.weight_ih, self.bias_ih).to(h.dtype)
        h_gates = F.linear(h.to(dtype), self.weight_hh, self.bias_hh).to(h.dtype)
        h = _cell(x_gates, h_gates, h)[0]
        return h, h

    def unroll(self, x: Tensor, state: Tensor, first: Tensor) -> Tensor:
        """x [T, B, in], state [B, H], first [T, B] -> output [T, B, H]."""
        x_gates = F.linear(x.to(compute_dtype(self.weight_ih)), self.weight_ih, self.bias_ih)  # [T, B, 3H]
        return _Unroll.apply(x_gates, state, first, self.weight_hh, self.bias_hh)


def _cell(x_gates: Tensor, h_gates: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gates [N, 3H] in the order r, z, n and h [N, H] -> h', [r, z], n, and the share of h in n before r."""
    hidden = h.shape[-1]
    rz = torch.add(x_gates[:, : 2 * hidden], h_gates[:, : 2 * hidden]).sigmoid_()
    r, z = rz[:, :hidden], rz[:, hidden:]
    h_new = h_gates[:, 2 * hidden :]
    n = torch.addcmul(x_gates[:, 2 * hidden :], r, h_new).tanh_()
    return torch.lerp(n, h, z), rz, n, h_new


class _Unroll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, state: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        weight_t = weight.to(x_gates.dtype).t()  # [H, 3H]
        keep = (~first).to(state.dtype).unsqueeze(-1)  # [T, B, 1]
        h, steps = state, []
        # The dtypes are set here, once and for all.
        with torch.autocast(x_gates.device.type, enabled=False):
            for x, k in zip(x_gates.to(state.dtype), keep, strict=True):
                h_in = h * k
                product = h_in.to(weight_t.dtype) @ weight_t
                h, rz, n, h_new = _cell(x, product.to(h.dtype) + bias, h_in)
                steps.append((h, h_in, rz, n, h_new))
        out, h_in, rz, n, h_new = (torch.stack(tensors) for tensors in zip(*steps, strict=True))
        ctx.save_for_backward(h_in, rz, n, h_new, keep, weight)
        ctx.compute_dtype = x_gates.dtype
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor, Tensor]:
        (grad_out,) = grads
        h_in, rz, n, h_new, keep, weight = ctx.saved_tensors
        num_steps, batch, hidden = h_in.shape
        r, z = rz.chunk(2, dim=-1)
        with torch.autocast(grad_out.device.type, enabled=False):
            # All that does not depend on the gradient of h', for all steps at once: d(gates before their
            # activation) / dh', [T, B, 3, H].
            by_n = (1 - z) * (1 - n * n)
            by_h = torch.stack((by_n * h_new * r * (1 - r), (h_in - n) * z * (1 - z), by_n * r), dim=2)
            w = weight.to(ctx.compute_dtype)
            grad_h = torch.zeros_like(h_in[0])
            grad_hs = torch.empty_like(h_in)
            grad_gates = torch.empty_like(by_h, dtype=w.dtype)
            for t in range(num_steps - 1, -1, -1):
                grad_h = torch.add(grad_h, grad_out[t], out=grad_hs[t])
                grad_gates[t] = by_h[t] * grad_h.unsqueeze(1)
                through_gates = grad_gates[t].view(batch, 3 * hidden) @ w
                grad_h = torch.addcmul(through_gates, grad_h, z[t]) * keep[t]
            flat_gates = grad_gates.view(num_steps * batch, 3 * hidden)
            grad_weight = flat_gates.t() @ h_in.view(num_steps * batch, hidden).to(w.dtype)
            grad_bias = flat_gates.sum(0, dtype=h_in.dtype)
            grad_x_gates = grad_gates.clone()
            grad_x_gates[:, :, 2] = grad_hs * by_n
        return (
            grad_x_gates.view(num_steps, batch, 3 * hidden),
            grad_h,
            None,
            grad_weight.to(weight.dtype),
            grad_bias.to(weight.dtype),
        )
