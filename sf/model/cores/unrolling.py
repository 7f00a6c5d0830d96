"""How the recurrent cores go through the steps of trajectories, forth and back, with a compiled loop a step or without.

Between two products, memory is read once by a loop of sf/system/native. The equations are those of
`sf.model.cores.gru`, `lstm` and `mingru`, whose unrolls these take the place of where a compiler is.
Arrays with a time axis are given to a loop as the address of a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from sf.system.native import kernels

_CACHED = 1 << 16  # numbers: several tensors of so many stay in the cache of a core

sigmoid_backward = torch.ops.aten.sigmoid_backward  # (a, y) -> a y (1 - y)
tanh_backward = torch.ops.aten.tanh_backward  # (a, y) -> a (1 - y^2)


def add_product(x: Tensor, h: Tensor, weight_t: Tensor, out: Tensor) -> None:
    """out [N, M] = x [N, M] + h [N, K] @ weight_t [K, M]. The product has the dtype of the weight; all else has one."""
    if out.dtype == weight_t.dtype:
        torch.addmm(x, h, weight_t, out=out)
    else:
        torch.add(x, h.to(weight_t.dtype) @ weight_t, out=out)


def blocks_from_the_end(states: Tensor) -> Iterator[slice]:
    """Steps of [T, B, H] for which the same is computed at once: so few on a CPU that it stays in the cache."""
    num_steps = len(states)
    size = max(1, _CACHED // states[0].numel()) if states.device.type == "cpu" else num_steps
    for end in range(num_steps, 0, -size):
        yield slice(max(0, end - size), end)


def has_loops(x_gates: Tensor, state: Tensor) -> bool:
    """Whether the loops are there for such gates [..., N, G] and states [N, S], and pay."""
    return state.dtype == torch.float32 and kernels.pay(x_gates, size=x_gates.shape[-2] * x_gates.shape[-1])


def lstm_step(x_gates: Tensor, h_gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """x_gates, h_gates [N, 4H], both with their biases; c [N, H] -> h', c'. For inference."""
    num_rows, hidden = c.shape
    ones = torch.ones(num_rows)
    c, c_next, h = c.contiguous(), torch.empty(num_rows, hidden), torch.empty(num_rows, hidden)
    unused = torch.empty(num_rows, 4 * hidden), torch.empty(num_rows, hidden, dtype=x_gates.dtype)
    at = [tensor.data_ptr() for tensor in (x_gates, h_gates, c, ones, ones, unused[0], c_next, h, unused[1])]
    kernels.find("lstm_forward", x_gates)(*at, num_rows, hidden)
    return h, c_next


def gru_step(x_gates: Tensor, h_gates: Tensor, h: Tensor) -> Tensor:
    """x_gates, h_gates [N, 3H], both with their biases; h [N, H] -> h'. For inference."""
    num_rows, hidden = h.shape
    ones, no_bias = torch.ones(num_rows), torch.zeros(3 * hidden)
    h, h_out = h.contiguous(), torch.empty(num_rows, hidden)
    unused = torch.empty(num_rows, 4 * hidden), torch.empty(num_rows, hidden, dtype=x_gates.dtype)
    at = [tensor.data_ptr() for tensor in (x_gates, h_gates, no_bias, h, ones, ones, unused[0], h_out, unused[1])]
    kernels.find("gru_forward", x_gates)(*at, num_rows, hidden)
    return h_out


class LSTMUnroll(torch.autograd.Function):
    """x_gates [T, B, 4H] with all biases, state [B, 2H], first [T, B], weight [4H, H] -> h [T, B, H]."""

    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, state: Tensor, first: Tensor, weight: Tensor) -> Tensor:
        (num_steps, batch, _), hidden, dtype = x_gates.shape, state.shape[1] // 2, x_gates.dtype
        x_gates, weight_t, keep = x_gates.contiguous(), weight.to(dtype).t(), _keep(first)
        gates, c = torch.empty(num_steps, batch, 4 * hidden), torch.empty(num_steps + 1, batch, hidden)
        out, h_in = torch.empty(num_steps, batch, hidden), torch.empty(num_steps + 1, batch, hidden, dtype=dtype)
        h_in[0] = torch.where(first[0].unsqueeze(-1), 0.0, state[:, :hidden])
        c[0] = state[:, hidden:]
        product = torch.empty(batch, 4 * hidden, dtype=dtype)
        step = kernels.find("lstm_forward", x_gates)
        x_at, c_at, keep_at, gates_at, out_at, h_at = map(_Steps, (x_gates, c, keep, gates, out, h_in))
        with torch.autocast("cpu", enabled=False):
            for t in range(num_steps):
                torch.mm(h_in[t], weight_t, out=product)
                given = x_at[t], product.data_ptr(), c_at[t], keep_at[t], keep_at[t + 1]
                step(*given, gates_at[t], c_at[t + 1], out_at[t], h_at[t + 1], batch, hidden)
        ctx.save_for_backward(h_in, c, gates, keep, weight)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor]:
        h_in, c, gates, keep, weight = ctx.saved_tensors
        num_steps, batch, hidden = gates.shape[0], gates.shape[1], c.shape[2]
        grad_out, w = grads[0].contiguous(), weight.to(h_in.dtype)
        grad_gates = torch.empty(num_steps, batch, 4 * hidden, dtype=h_in.dtype)
        product, grad_c = torch.zeros(batch, hidden, dtype=h_in.dtype), torch.zeros(batch, hidden)
        step = kernels.find("lstm_backward", h_in)
        out_at, gates_at, c_at, keep_at, grad_at = map(_Steps, (grad_out, gates, c, keep, grad_gates))
        with torch.autocast("cpu", enabled=False):
            for t in range(num_steps - 1, -1, -1):
                given = out_at[t], product.data_ptr(), grad_c.data_ptr(), gates_at[t], c_at[t], c_at[t + 1]
                step(*given, keep_at[t], keep_at[t + 1], grad_at[t], batch, hidden)
                torch.mm(grad_gates[t], w, out=product)
            grad_state = torch.cat((_kept(product.float(), keep[0]), grad_c), dim=-1)
            grad_weight = grad_gates.flatten(0, 1).t() @ h_in[:-1].flatten(0, 1)
        return grad_gates, grad_state, None, grad_weight.to(weight.dtype)


class GRUUnroll(torch.autograd.Function):
    """x_gates [T, B, 3H] with its biases, state [B, H], first [T, B], weight [3H, H], bias [3H] -> h [T, B, H]."""

    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, state: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        (num_steps, batch, _), hidden, dtype = x_gates.shape, state.shape[1], x_gates.dtype
        x_gates, weight_t, keep, bias = x_gates.contiguous(), weight.to(dtype).t(), _keep(first), bias.float()
        gates, h = torch.empty(num_steps, batch, 4 * hidden), torch.empty(num_steps + 1, batch, hidden)
        h_in = torch.empty(num_steps + 1, batch, hidden, dtype=dtype)
        h_in[0] = torch.where(first[0].unsqueeze(-1), 0.0, state)
        h[0] = state
        product = torch.empty(batch, 3 * hidden, dtype=dtype)
        step = kernels.find("gru_forward", x_gates)
        x_at, h_at, keep_at, gates_at, h_in_at = map(_Steps, (x_gates, h, keep, gates, h_in))
        with torch.autocast("cpu", enabled=False):
            for t in range(num_steps):
                torch.mm(h_in[t], weight_t, out=product)
                given = x_at[t], product.data_ptr(), bias.data_ptr(), h_at[t], keep_at[t], keep_at[t + 1]
                step(*given, gates_at[t], h_at[t + 1], h_in_at[t + 1], batch, hidden)
        ctx.save_for_backward(h_in, h, gates, keep, weight)
        return h[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor, Tensor]:
        h_in, h, gates, keep, weight = ctx.saved_tensors
        num_steps, batch, hidden = gates.shape[0], gates.shape[1], h.shape[2]
        grad_out, w = grads[0].contiguous(), weight.to(h_in.dtype)
        grad_gates = torch.empty(num_steps, batch, 3 * hidden, dtype=h_in.dtype)
        grad_x = torch.empty_like(grad_gates)
        product, grad_z = torch.zeros(batch, hidden, dtype=h_in.dtype), torch.zeros(batch, hidden)
        step = kernels.find("gru_backward", h_in)
        arrays = grad_out, gates, h, keep, grad_gates, grad_x
        out_at, gates_at, h_at, keep_at, grad_at, grad_x_at = map(_Steps, arrays)
        with torch.autocast("cpu", enabled=False):
            for t in range(num_steps - 1, -1, -1):
                given = out_at[t], product.data_ptr(), grad_z.data_ptr(), gates_at[t], h_at[t]
                step(*given, keep_at[t], keep_at[t + 1], grad_at[t], grad_x_at[t], batch, hidden)
                torch.mm(grad_gates[t], w, out=product)
            grad_state = _kept(product.float() + grad_z, keep[0])
            flat_gates = grad_gates.flatten(0, 1)
            grad_weight = flat_gates.t() @ h_in[:-1].flatten(0, 1)
            grad_bias = flat_gates.sum(0)
        return grad_x, grad_state, None, grad_weight.to(weight.dtype), grad_bias.to(weight.dtype)


class MinGRUUnroll(torch.autograd.Function):
    """gates [T, B, 2H] with their biases, state [B, H], first [T, B] -> h [T, B, H]. One loop does all steps."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor, first: Tensor) -> Tensor:
        (num_steps, batch, _), hidden = gates.shape, state.shape[1]
        gates, keep, h = gates.contiguous(), _keep(first), torch.empty(num_steps + 1, batch, hidden)
        h[0] = state
        at = gates.data_ptr(), keep.data_ptr(), h.data_ptr()
        kernels.find("mingru_forward", gates)(*at, num_steps, batch, hidden)
        ctx.save_for_backward(gates, keep, h)
        return h[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        gates, keep, h = ctx.saved_tensors
        num_steps, batch, hidden = len(gates), h.shape[1], h.shape[2]
        grad_out, grad_state, grad_gates = grads[0].contiguous(), torch.zeros(batch, hidden), torch.empty_like(gates)
        at = [tensor.data_ptr() for tensor in (grad_out, gates, keep, h, grad_state, grad_gates)]
        kernels.find("mingru_backward", gates)(*at, num_steps, batch, hidden)
        return grad_gates, grad_state, None


class _Steps:
    """The address of each step of a dense tensor [T, ...], which must live longer."""

    def __init__(self, tensor: Tensor) -> None:
        self._begin, self._size = tensor.data_ptr(), tensor.stride(0) * tensor.element_size()

    def __getitem__(self, t: int) -> int:
        return self._begin + t * self._size


def _keep(first: Tensor) -> Tensor:
    """[T, B] -> [T + 1, B] float32: 0 where an episode begins."""
    keep = torch.ones(len(first) + 1, first.shape[1])
    torch.logical_not(first, out=keep[:-1])
    return keep


def _kept(numbers: Tensor, keep: Tensor) -> Tensor:
    """[B, H], with 0 where keep [B] is 0, also in the place of NaN."""
    return numbers.masked_fill(keep.unsqueeze(-1) == 0, 0.0)
