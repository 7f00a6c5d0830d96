"""The compiled loops against PyTorch's operations, which take their place where there is no compiler."""

import math

import pytest
import torch
import torch.nn.functional as F

from sf.model.cores import unrolling
from sf.model.cores.gru import GRU
from sf.model.cores.lstm import LSTM
from sf.model.cores.mingru import MinGRU
from sf.model.layers import ELU
from sf.model.normalizers import ImageNormalizer
from sf.system.native import kernels

DTYPES = [torch.float32, torch.bfloat16]

pytestmark = pytest.mark.skipif(kernels.why_not() is not None, reason=f"no compiled loops: {kernels.why_not()}")


@pytest.fixture
def eager(monkeypatch):
    """Calls a function with PyTorch's operations alone."""

    def call(function):
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "pay", lambda *_, **__: False)
            return function()

    return call


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 1000])
def test_elu_is_that_of_torch_to_rounding(size):
    x = torch.linspace(-20, 20, size) if size > 100 else torch.linspace(-1e-3, 1e-3, size)
    expected = F.elu(x.double())
    kernels.elu_(x)
    torch.testing.assert_close(x.double(), expected, rtol=3e-7, atol=1e-12)  # relative, also close to 0


def test_elu_rounds_to_the_nearest_bfloat16():
    every_one = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16).view(torch.bfloat16)
    x = every_one.clone()
    kernels.elu_(x)
    expected = F.elu(every_one.double())
    exact, ours = expected.to(torch.bfloat16), x
    assert torch.equal(exact.isnan(), ours.isnan())
    there = ~exact.isnan() & (exact != 0)
    assert torch.equal(exact == 0, ours == 0)  # whatever its sign
    # A tie may fall to the other side: one step of the last digit, in a few of the 65,536.
    away = (exact.view(torch.int16).int() - ours.view(torch.int16).int())[there].abs()
    assert away.max() <= 1
    assert (away > 0).float().mean() < 1e-3


def test_what_is_not_finite_stays_so():
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0] * 7)
    kernels.elu_(x)
    assert x[:5].isnan().tolist() == [True, False, False, False, False]
    assert x[1:5].tolist() == [math.inf, -1.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 1, 1), (17, 5, 3), (72, 128, 3)])
@pytest.mark.parametrize("num_images", [0, 1, 5])
def test_images_are_normalised_as_by_torch(eager, dtype, shape, num_images):
    torch.manual_seed(0)
    normalizer = ImageNormalizer(shape)
    normalizer.scale.fill_(0.0137)
    normalizer.offset.copy_(-2.0 * torch.rand(shape))
    pixels = torch.randint(0, 256, (num_images, *shape), dtype=torch.uint8)
    ours, theirs = normalizer(pixels, dtype), eager(lambda: normalizer(pixels, dtype))
    assert ours.shape == theirs.shape
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, theirs, rtol=2**-8 if dtype == torch.bfloat16 else 1e-6, atol=1e-6)


def test_images_that_are_not_dense_are_normalised_too(eager):
    torch.manual_seed(0)
    normalizer = ImageNormalizer((4, 6, 3))
    pixels = torch.randint(0, 256, (8, 6, 4, 3), dtype=torch.uint8).transpose(1, 2)
    torch.testing.assert_close(normalizer(pixels, torch.float32), eager(lambda: normalizer(pixels, torch.float32)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inplace", [True, False])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_the_module_and_its_gradient_are_those_of_torch(dtype, inplace, memory_format):
    torch.manual_seed(0)
    before = torch.randn(3, 5, 7, 4, dtype=dtype).to(memory_format=memory_format)
    weights = torch.randn(3, 5, 7, 4, dtype=dtype)
    results = []
    for activation, keeps in ((ELU(inplace), not inplace), (torch.nn.ELU(inplace=True), False)):
        leaf = before.clone().requires_grad_()
        given = leaf * 1.0
        out = activation(given)
        assert (out.data_ptr() != given.data_ptr()) == keeps
        (out * weights).sum().backward()
        results.append((out.detach(), leaf.grad))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_tensor_with_gaps_is_left_to_torch():
    every_other = torch.linspace(-1, 1, 20)[::2]
    assert not kernels.takes_elu(every_other)
    torch.testing.assert_close(ELU(inplace=False)(every_other), F.elu(every_other))


def test_what_many_threads_of_torch_share_is_left_to_them(monkeypatch):
    large, small = torch.empty(1 << 20), torch.empty(1 << 15)
    assert kernels.takes_elu(large)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert not kernels.takes_elu(large)
    assert kernels.takes_elu(small)
    assert not unrolling.has_loops(torch.empty(4, 512, 512), torch.empty(512, 256))
    assert unrolling.has_loops(torch.empty(64, 16, 512), torch.empty(16, 256))


@pytest.mark.parametrize("core", [GRU, LSTM, MinGRU])
@pytest.mark.parametrize(("num_steps", "batch", "hidden"), [(1, 1, 1), (1, 3, 16), (7, 1, 33), (9, 5, 48)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_unroll_and_its_gradients_are_those_without_loops(core, num_steps, batch, hidden, dtype, eager):
    torch.manual_seed(0)
    module = core(6, hidden)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x, state = torch.randn(num_steps, batch, 6), torch.randn(batch, module.state_size)
    first = torch.rand(num_steps, batch) < 0.3
    weights = torch.randn(num_steps, batch, hidden)

    def unroll():
        module.zero_grad()
        leaves = x.clone().requires_grad_(), state.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            out = module.unroll(*leaves, first)
        (out * weights).sum().backward()
        gradients = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
        return {"out": out.detach(), "x": leaves[0].grad, "state": leaves[1].grad} | gradients

    assert unrolling.has_loops(x.to(dtype), state)
    ours, theirs = unroll(), eager(unroll)
    for name, expected in theirs.items():
        # In bfloat16 a number that falls to the other side of a tie goes through the steps that follow.
        tolerances = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.05}
        torch.testing.assert_close(ours[name], expected, **tolerances, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("core", [GRU, LSTM, MinGRU])
@pytest.mark.parametrize("scale", [30.0, 1e3, 1e6])
def test_gates_that_are_far_from_0_are_open_or_closed(core, scale, eager):
    torch.manual_seed(0)
    module, x = core(6, 48), scale * torch.randn(1, 5, 6)
    state, first = torch.randn(5, module.state_size), torch.zeros(1, 5, dtype=torch.bool)

    def unroll():
        leaf = state.clone().requires_grad_()
        out = module.unroll(x, leaf, first)
        out.sum().backward()
        return out.detach(), leaf.grad

    for ours, theirs in zip(unroll(), eager(unroll), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_state_goes_into_the_next_product_as_the_nearest_bfloat16_and_ties_as_the_even_one():
    upper = torch.arange(-(1 << 15), 1 << 15, 7, dtype=torch.int32) << 16
    lower = torch.tensor([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], dtype=torch.int32)
    h = (upper[:, None] | lower).view(torch.float32).flatten()[None]
    hidden = h.shape[1]
    x = torch.zeros(1, 3 * hidden, dtype=torch.bfloat16)
    x[:, hidden : 2 * hidden] = 1000.0  # z is 1, and n is 0: what comes out is h itself
    out, h_next = torch.empty(1, hidden), torch.empty(1, hidden, dtype=torch.bfloat16)
    product, bias, keep, gates = torch.zeros_like(x), torch.zeros(3 * hidden), torch.ones(1), torch.empty(1, 4 * hidden)
    given = (x, product, bias, h, keep, keep, gates, out, h_next)
    kernels.find("gru_forward", x)(*(tensor.data_ptr() for tensor in given), 1, hidden)
    assert torch.equal(out.nan_to_num(7.0), h.nan_to_num(7.0))
    expected = h.to(torch.bfloat16)
    assert torch.equal(h_next.isnan(), expected.isnan())
    assert torch.equal(h_next.nan_to_num(7.0), expected.nan_to_num(7.0))


@pytest.mark.parametrize("core", [GRU, LSTM, MinGRU])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_is_that_without_loops(core, dtype, eager):
    torch.manual_seed(0)
    module = core(6, 33).to(dtype)
    x, state, first = torch.randn(5, 6), torch.randn(5, module.state_size), torch.tensor([True, False] * 2 + [True])
    with torch.no_grad():
        ours, theirs = module.step(x, state, first), eager(lambda: module.step(x, state, first))
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_an_export_sees_the_operations():
    exported = torch.export.export(torch.nn.Sequential(torch.nn.Linear(3, 4), ELU(inplace=True)), (torch.randn(2, 3),))
    assert any("elu" in str(node.target) for node in exported.graph.nodes)
