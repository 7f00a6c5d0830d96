"""Packed weights: a program computes with the weights that its module has now, however they came there."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from sf.model.inference import load_flat, num_weights
from sf.system.native import kernels, packing, programs
from sf.system.native.packing import PackedProducts, PackedWeights
from sf.system.native.programs import Program

pytestmark = [
    pytest.mark.skipif(
        kernels.why_not() is not None or not packing._can_be_packed(torch.ones(2, 2)),
        reason="this machine has no C++ compiler, or this PyTorch nothing to pack with",
    ),
    pytest.mark.long,
]

PACKED = {"same.weight", "strided.weight", "linear.weight", "own", "twice"}
if packing._can_be_packed(torch.ones(2, 2, dtype=torch.bfloat16)):
    PACKED.add("rounded.weight")
TOLERANCE = 2e-2  # of bfloat16, for numbers about 1


class Products(nn.Module):
    """Linear layers and convolutions of all kinds; half of it in another dtype, as in a policy worker's network."""

    def __init__(self):
        super().__init__()
        self.same = nn.Conv2d(3, 8, 3, padding=1)
        self.strided = nn.Conv2d(8, 16, 3, stride=2, dilation=2, bias=False)
        self.grouped = nn.Conv2d(16, 16, 2, groups=4)
        self.named = nn.Conv2d(16, 16, 1, padding="same")
        self.linear = nn.Linear(64, 24)
        self.rounded = nn.Linear(24, 24).to(torch.bfloat16)
        self.own = nn.Parameter(torch.randn(5, 24) / 5)  # [out, in]
        self.by_name = nn.Linear(5, 5)
        self.twice = nn.Parameter(torch.randn(5, 5) / 3)

    def forward(self, image, other):
        x = self.named(self.grouped(self.strided(F.relu(self.same(image)))))
        x = self.linear(x.flatten(1))
        x = self.rounded(x.to(torch.bfloat16)).float()
        x = F.linear(x.unsqueeze(1).expand(-1, 3, -1), self.own)  # [N, 3, 5]
        x = F.linear(x, self.by_name.weight, bias=self.by_name.bias)
        return F.linear(x, self.twice) * self.twice.sum() + other.unsqueeze(1)


def inputs(num):
    generator = torch.Generator().manual_seed(num)
    return torch.randn(num, 3, 9, 9, generator=generator), torch.randn(num, 5, generator=generator)


def assert_same(program, module, num=6):
    expected = module(*inputs(num))
    (found,) = program(*inputs(num))
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def changed(module):
    """Weights as they come from a learner."""
    flat = torch.empty(num_weights(module))
    flat.normal_().mul_(0.3)
    return flat


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A module and the file of its program, made in a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for folder in ("TORCHINDUCTOR_CACHE_DIR", "TMPDIR"):
            patch.setenv(folder, "")  # put back at the end
        torch.manual_seed(0)
        module = Products().requires_grad_(False)
        example = inputs(programs.BATCH)
        path = programs.path_of(module, example, [])
        programs.make(lambda: programs.followed(module, example), path)
        return module, path


def test_products_of_all_kinds_are_the_same_for_every_batch(made):
    module, path = made
    program = Program(path, module)
    for num in (2, 7, 64):
        assert_same(program, module, num)


def test_it_packs_what_linear_layers_and_plain_convolutions_multiply_by(made):
    module, path = made
    names = Program(path, module)._runner.get_constant_names_to_original_fqns().values()
    weights = list(programs.weights_of(module))
    assert {weights[packing._idx(name)] for name in names if name.startswith(packing._CONSTANT)} == PACKED


@pytest.mark.parametrize("name", sorted(PACKED))
@pytest.mark.parametrize("is_inference", [False, True])
def test_one_weight_that_is_written_to_is_enough(made, name, is_inference):
    module, path = made
    load_flat(module, changed(module))
    program = Program(path, module)
    (before,) = program(*inputs(6))
    with torch.inference_mode(is_inference):
        module.get_parameter(name).mul_(-1.5)
        assert_same(program, module)
    assert not torch.allclose(program(*inputs(6))[0], before, rtol=TOLERANCE, atol=TOLERANCE)


def test_several_programs_of_one_module_see_what_is_loaded(made):
    module, path = made
    several = [Program(path, module) for _ in range(3)]
    for program in several:
        load_flat(module, changed(module))
        for each in (program, *several):
            assert_same(each, module)


@torch.inference_mode()
def test_weights_whose_changes_nobody_counts_are_read_where_they_are(made):
    _, path = made
    module = Products()
    program = Program(path, module)
    assert not program._packed._pairs
    for _ in range(2):
        load_flat(module, changed(module))
        assert_same(program, module)


def test_weights_with_a_layout_for_each_batch_are_read_where_they_are(made, monkeypatch):
    module, path = made
    monkeypatch.setattr(packing, "_BATCHES", (2, 16))
    monkeypatch.setattr(packing, "_packed", lambda weight, batch=2: torch.ones(weight.numel() + batch).to_mkldnn())
    program = Program(path, module)
    assert not program._packed._pairs
    for _ in range(2):
        load_flat(module, changed(module))
        assert_same(program, module)


class Runner:
    """Counts what PyTorch would keep for ever."""

    def __init__(self, names):
        self.names, self.num_updates = names, 0

    def get_constant_names_to_original_fqns(self):
        return self.names

    def update_constant_buffer(self, constants, *_, user_managed):
        self.constants = constants
        assert user_managed
        self.num_updates += 1


def test_weights_are_packed_once_for_each_version_and_in_place(monkeypatch):
    num_packed = []
    packed = packing._packed
    weights = [torch.randn(8, 4), torch.randn(8), torch.randn(8, 8)]
    runner = Runner({"a": "packed_0", "b": "packed_2", "c": "_tensor_constant0"})
    kept = PackedWeights(runner, weights)
    assert set(runner.constants) == {"a", "b"}
    addresses = [torch.ops.mkldnn.data_ptr(runner.constants[name]) for name in ("a", "b")]
    monkeypatch.setattr(packing, "_packed", lambda weight: num_packed.append(1) or packed(weight))
    for version in range(3):
        weights[2].add_(1.0)
        for _ in range(4):
            kept.refresh()
            assert torch.equal(runner.constants["b"].to_dense(), weights[2])
        assert len(num_packed) == 2 * (version + 1)
    weights[1].add_(1.0)  # is no constant
    kept.refresh()
    assert len(num_packed) == 6
    assert runner.num_updates == 1
    assert addresses == [torch.ops.mkldnn.data_ptr(runner.constants[name]) for name in ("a", "b")]


def test_what_stands_for_weights_is_not_a_number():
    weights = [torch.randn(8, 4), torch.randn(8), torch.randn(2, 2).double(), torch.randn(2, 2, 3), torch.empty(0, 4)]
    constants = packing.constants(weights)
    assert list(constants) == ["packed_0"]
    assert constants["packed_0"].isnan().all()
    x = torch.randn(3, 4)
    with PackedProducts(weights, {"packed_0": torch.ones(8, 4)}):
        assert torch.allclose(F.linear(x, weights[0]), x.sum(1, keepdim=True).expand(3, 8))
        assert torch.equal(F.linear(x[0], weights[0]), weights[0] @ x[0])  # not for a single one
    assert torch.equal(F.linear(x, weights[0]), x @ weights[0].T)
