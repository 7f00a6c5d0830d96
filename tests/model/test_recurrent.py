"""The cores against a cell of torch's or a slow one, one step at a time under autograd."""

import math

import pytest
import torch
from torch import nn

from sf.model.cores import unrolling
from sf.model.cores.gru import GRU
from sf.model.cores.lstm import LSTM
from sf.model.cores.mingru import MinGRU


class MinGRUCell(nn.Module):
    """The equations of Feng et al. 2024, number by number."""

    def __init__(self, in_size, hidden_size):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(2 * hidden_size, in_size))
        self.bias_ih = nn.Parameter(torch.empty(2 * hidden_size))

    def forward(self, x, h):  # [N, in], [N, H] -> [N, H]
        rows = []
        for n in range(len(x)):
            z_in, h_in = (self.weight_ih @ x[n] + self.bias_ih).chunk(2)
            z = [1 / (1 + torch.exp(-a)) for a in z_in]
            g = [a + 0.5 if a >= 0 else 1 / (1 + torch.exp(-a)) for a in h_in]
            rows.append(torch.stack([(1 - z[k]) * h[n, k] + z[k] * g[k] for k in range(h.shape[1])]))
        return torch.stack(rows)


CORES = [(GRU, nn.GRUCell), (LSTM, nn.LSTMCell), (MinGRU, MinGRUCell)]
IN, H = 5, 4


def build(core: type, num_steps: int, batch: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    module = core(IN, H).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x = torch.randn(num_steps, batch, IN, dtype=torch.float64)
    state = torch.randn(batch, module.state_size, dtype=torch.float64)
    first = torch.rand(num_steps, batch) < 0.3
    return module, x, state, first


def slow_unroll(cell: nn.Module, x, state, first) -> torch.Tensor:
    parts = state.chunk(state.shape[1] // H, dim=-1)
    outs = []
    for t in range(len(x)):
        parts = [torch.where(first[t].unsqueeze(-1), 0.0, part) for part in parts]
        result = cell(x[t], parts[0] if len(parts) == 1 else tuple(parts))
        parts = result if isinstance(result, tuple) else (result,)
        outs.append(parts[0])
    return torch.stack(outs)


@pytest.fixture(params=["one block", "blocks of two steps"])
def blocks(request, monkeypatch):
    """The backward pass takes several steps at once; sizes of a test are so small that it takes all of them."""
    if request.param == "blocks of two steps":
        monkeypatch.setattr(unrolling, "_CACHED", 2 * 3 * H)  # for a batch of 3


def test_blocks_cover_every_step_once(blocks):
    steps = [step for block in unrolling.blocks_from_the_end(torch.empty(9, 3, H)) for step in range(9)[block][::-1]]
    assert steps == list(range(9))[::-1]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("core", "cell"), CORES)
@pytest.mark.parametrize(("num_steps", "batch"), [(1, 1), (1, 3), (7, 1), (9, 3)])
def test_an_unroll_and_its_gradients_are_those_of_the_cell(core, cell, num_steps, batch):
    module, x, state, first = build(core, num_steps, batch)
    reference = cell(IN, H).double()
    reference.load_state_dict(module.state_dict())
    weights = torch.randn(num_steps, batch, H, dtype=torch.float64)
    results = []
    for network, unroll in [(module, module.unroll), (reference, lambda *a: slow_unroll(reference, *a))]:
        leaves = x.clone().requires_grad_(), state.clone().requires_grad_()
        out = unroll(*leaves, first)
        (out * weights).sum().backward()
        named = {name: parameter.grad for name, parameter in network.named_parameters()}
        results.append({"out": out, "x": leaves[0].grad, "state": leaves[1].grad} | named)
    ours, theirs = results
    assert set(ours) == set(theirs)
    for name, expected in theirs.items():
        assert ours[name].shape == expected.shape
        torch.testing.assert_close(ours[name], expected, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize(("core", "cell"), CORES)
def test_steps_give_what_an_unroll_gives(core, cell):
    module, x, state, first = build(core, 9, 3)
    outs = module.unroll(x, state, first)
    for t in range(9):
        out, state = module.step(x[t], state, first[t])
        torch.testing.assert_close(out, outs[t])
    assert state.shape == (3, module.state_size)


@pytest.mark.parametrize("with_loops", [True, False])
@pytest.mark.parametrize("lost", [math.nan, math.inf])
@pytest.mark.parametrize("core", [GRU, LSTM, MinGRU])
def test_what_is_not_finite_does_not_pass_the_beginning_of_an_episode(core, lost, with_loops):
    module, x, *_ = build(core, 7, 3)
    module, x, first = module.float(), x.float(), torch.zeros(7, 3, dtype=torch.bool)
    module.with_loops = with_loops
    first[0] = first[4] = True

    def unroll(x, state, weight):
        module.zero_grad()
        leaves = x.clone().requires_grad_(), state.clone().requires_grad_()
        out = module.unroll(*leaves, first)
        out.backward(weight)
        return {"out": out, "x": leaves[0].grad, "state": leaves[1].grad} | {
            name: parameter.grad.clone() for name, parameter in module.named_parameters()
        }

    weight, zeros = torch.randn(7, 3, H), torch.zeros(3, module.state_size)
    expected = unroll(x, zeros, weight)
    found = unroll(x, torch.full_like(zeros, lost), weight)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, msg=lambda m, name=name: f"{name}: {m}")
    assert found["state"].eq(0).all()
    with torch.no_grad():
        steps = [module.step(x[0], state, first[0])[0] for state in (zeros, torch.full_like(zeros, lost))]
    torch.testing.assert_close(*steps)

    lost_x, lost_weight = x.clone(), weight.clone()
    lost_x[2] = math.nan
    lost_weight[0] = lost_weight[5] = lost
    out = unroll(lost_x, zeros, weight)["out"]
    torch.testing.assert_close(out[4:], expected["out"][4:])
    assert out[2:4].isnan().all()
    backward = unroll(x, zeros, lost_weight)
    torch.testing.assert_close(backward["x"][1:4], expected["x"][1:4])
    assert not backward["x"][4:6].isfinite().any()
    assert backward["state"].eq(0).all()


def test_a_new_lstm_keeps_most_of_its_cell():
    cell = torch.randn(3, H)
    state = torch.cat((torch.zeros(3, H), cell), dim=-1)
    _, after = LSTM(IN, H).step(torch.zeros(3, IN), state, torch.zeros(3, dtype=torch.bool))
    torch.testing.assert_close(after[:, H:], cell * torch.sigmoid(torch.tensor(1.0)))


def test_a_new_mingru_remembers_for_2_to_64_steps():
    module, one = MinGRU(IN, 16), torch.ones(1, 16)
    nothing, first = torch.zeros(1, IN), torch.zeros(1, dtype=torch.bool)
    kept = module.step(nothing, one, first)[1] - module.step(nothing, 0 * one, first)[1]
    torch.testing.assert_close(kept.squeeze(0)[[0, -1]], torch.tensor([1 / 2, 63 / 64]))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("core", "cell"), CORES)
def test_gradients_pass_gradcheck(core, cell):
    module, x, state, first = build(core, 4, 2)
    inputs = (x.requires_grad_(), state.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, state: module.unroll(x, state, first), inputs)


@pytest.mark.parametrize(("core", "cell"), CORES)
def test_mixed_precision_keeps_the_state_and_the_gradients_of_parameters_in_float32(core, cell):
    module, x, state, first = build(core, 9, 3)
    module = module.float()
    exact = module.unroll(x.float(), state.float(), first)
    with torch.autocast("cpu", torch.bfloat16):
        out = module.unroll(x.float(), state.float(), first)
        _, next_state = module.step(x[0].float(), state.float(), first[0])
    out.sum().backward()
    assert out.dtype == next_state.dtype == torch.float32
    assert {parameter.grad.dtype for parameter in module.parameters()} == {torch.float32}
    torch.testing.assert_close(out, exact, rtol=0, atol=0.05)
    assert not torch.equal(out, exact)
