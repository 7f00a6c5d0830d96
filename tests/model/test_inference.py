import math

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.model import registry
from sf.model.building import build_model
from sf.model.inference import inference_model, load_flat, num_weights, write_flat

SPACE = gym.spaces.Dict(
    {
        "image": gym.spaces.Box(0, 255, (36, 44, 3), np.uint8),
        "numbers": gym.spaces.Box(-1, 1, (5,), np.float32),
    }
)
SPEC = ActionSpec((3, 2), 1)
CONFIG = ModelConfig(core="gru", rnn_size=16, normalize_input=True, normalize_returns=True)


def trained(config: ModelConfig = CONFIG) -> torch.nn.Module:
    torch.manual_seed(1)
    model = build_model(config, SPACE, SPEC)
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.add_(0.1 * torch.rand_like(tensor))
    return model


def inputs(model: torch.nn.Module, n: int = 3) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    obs = {
        "image": torch.randint(0, 256, (n, 36, 44, 3), dtype=torch.uint8, generator=generator),
        "numbers": torch.randn(n, 5, generator=generator),
    }
    return obs, torch.randn(n, model.state_size, generator=generator), torch.zeros(n, dtype=torch.bool)


def published(model: torch.nn.Module) -> torch.Tensor:
    flat, other = torch.full((num_weights(model),), torch.nan), torch.zeros(num_weights(model))
    write_flat(model, flat)
    write_flat(model, other)
    assert torch.equal(bits(flat), bits(other))  # all of it is written
    return flat


def bits(flat: torch.Tensor) -> torch.Tensor:
    """What travels as bits may be NaN as a number."""
    return flat.view(torch.int32)


def test_flat_weights_make_an_inference_copy_act_as_the_trained_network():
    model = trained()
    copy = inference_model(CONFIG, SPACE, SPEC, "float32", "cpu")
    load_flat(copy, published(model))
    with torch.inference_mode():
        for ours, theirs in zip(copy.step(*inputs(copy)), model.step(*inputs(model)), strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("core", "encoder", "layer_norm"),
    [
        ("none", "simple", False),
        ("gru", "resnet", True),
        ("lstm", "mlp", True),
        ("mingru", "simple", False),
        ("transformer", "mlp", False),
    ],
)
def test_in_bfloat16_the_copy_stays_close_and_its_outputs_are_float32(core, encoder, layer_norm):
    config = ModelConfig(core=core, encoder=encoder, rnn_size=16, normalize_input=True, layer_norm=layer_norm)
    model = trained(config)
    copy = inference_model(config, SPACE, SPEC, "bfloat16", "cpu")
    load_flat(copy, published(model))
    assert {p.dtype for p in copy.trunk.parameters()} == {torch.bfloat16}
    assert copy.policy_head.weight.dtype == torch.float32
    with torch.inference_mode():
        out, exact = copy.step(*inputs(copy)), model.step(*inputs(model))
    assert {x.dtype for x in out} == {torch.float32}
    scale = exact.params.abs().mean()
    assert (out.params - exact.params).abs().max() < 0.05 * scale + 0.05


def test_writing_what_was_loaded_gives_the_same_vector():
    flat = published(trained())
    copy = inference_model(CONFIG, SPACE, SPEC, "float32", "cpu")
    load_flat(copy, flat)
    assert torch.equal(bits(published(copy)), bits(flat))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "numbers",
    [
        torch.tensor([1_700_000_051, 2**40 + 1, -(2**62), -1]),
        torch.tensor([2**31 - 1, -(2**31)], dtype=torch.int32),
        torch.tensor([1e300, 5e-324, math.inf, -math.inf, math.nan, 1 / 3], dtype=torch.float64),
        torch.tensor(1_700_000_051.25, dtype=torch.float64),
        torch.tensor([True, False, True]),
        torch.tensor([-128, 127], dtype=torch.int8),
        torch.tensor([0.5, 65504.0], dtype=torch.float16),
    ],
)
def test_numbers_of_any_dtype_are_the_same_to_the_copy(numbers, precision, monkeypatch):
    class Encoder(torch.nn.Module):
        out_size = 4

        def __init__(self, *_) -> None:
            super().__init__()
            self.register_buffer("odd", torch.zeros(3))  # so that the next begins anywhere in the vector
            self.register_buffer("numbers", torch.zeros_like(numbers))
            self.layer = torch.nn.Linear(5, 4)

    monkeypatch.setitem(registry._encoders, "with_numbers", Encoder)
    space, config = gym.spaces.Dict({"numbers": SPACE["numbers"]}), ModelConfig(encoder="with_numbers")
    model = build_model(config, space, SPEC)
    copy = inference_model(config, space, SPEC, precision, "cpu")
    name = next(name for name, _ in model.named_buffers() if name.endswith(".numbers"))
    model.get_buffer(name).copy_(numbers)
    load_flat(copy, published(model))
    loaded = copy.get_buffer(name)
    assert loaded.dtype == numbers.dtype
    torch.testing.assert_close(loaded, numbers, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("about", "spread"), [(1_700_000_050, 3), (1_700_000_000_000, 3_000), (20_000_001, 1)])
def test_whole_numbers_far_from_0_are_the_same_to_the_copy(about, spread):
    space = gym.spaces.Dict({"clock": gym.spaces.Box(0, 2**62, (2,), np.int64)})
    config = ModelConfig(normalize_input=True, normalize_returns=True)
    torch.manual_seed(1)
    model = build_model(config, space, SPEC)
    generator = torch.Generator().manual_seed(1)
    clocks = about + torch.randint(-spread, spread + 1, (64, 2), generator=generator)
    model.obs_norm.update({"clock": clocks.unsqueeze(0)}, torch.ones(1, 64, dtype=torch.bool))
    with torch.no_grad():
        model.policy_head.weight.mul_(300)
    copy = inference_model(config, space, SPEC, "float32", "cpu")
    load_flat(copy, published(model))
    state, first = torch.zeros(64, copy.state_size), torch.zeros(64, dtype=torch.bool)
    with torch.inference_mode():
        ours, theirs = (each.step({"clock": clocks}, state, first).params for each in (copy, model))
    assert theirs[:, : sum(SPEC.discrete_sizes)].std(0).max() > 0.1
    torch.testing.assert_close(ours, theirs)


def test_the_order_of_numbers_does_not_depend_on_the_memory_format():
    model = trained()
    flat = published(model)
    assert any(not p.is_contiguous() for p in model.parameters())  # channels_last is at work
    assert torch.equal(bits(published(model.to(memory_format=torch.contiguous_format))), bits(flat))


def test_the_copy_carries_no_gradients():
    copy = inference_model(CONFIG, SPACE, SPEC, "bfloat16", "cpu")
    assert not any(out.requires_grad for out in copy.step(*inputs(copy)))


def test_a_vector_for_another_network_is_refused():
    model = trained()
    with pytest.raises(ValueError, match=f"this network has {num_weights(model)} weights"):
        load_flat(model, torch.zeros(num_weights(model) + 1))


def test_what_is_copied_at_once_has_one_dtype(monkeypatch):
    dtypes = []

    def copy(targets, sources):
        dtypes.append([{tensor.dtype for tensor in tensors} for tensors in (targets, sources)])
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)

    monkeypatch.setattr(torch, "_foreach_copy_", copy)
    load_flat(inference_model(CONFIG, SPACE, SPEC, "bfloat16", "cpu"), published(trained()))
    assert all(len(ours) == len(theirs) == 1 for ours, theirs in dtypes)
    assert {dtype for ours, _ in dtypes for dtype in ours} == {torch.float32, torch.bfloat16}
