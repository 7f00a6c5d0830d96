"""Encoders: the shapes of their papers, which one an observation gets, and images that are encoded in parts."""

import gymnasium as gym
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.model.actor_critic import ActorCritic
from sf.model.building import build_model
from sf.model.encoders import blocks
from sf.model.encoders.blocks import in_parts
from sf.model.encoders.choice import build_encoder
from sf.model.encoders.images import ImageShape, PixelConv2d
from sf.model.registry import register_encoder, register_model

DOOM = gym.spaces.Box(0, 255, (72, 128, 3), np.uint8)
ATARI = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
VECTOR = gym.spaces.Box(-1, 1, (7,), np.float32)
SPEC = ActionSpec((3,), 0)


def pixels(space: gym.spaces.Box, n: int = 2) -> torch.Tensor:
    return torch.randint(0, 256, (n, *space.shape), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [
        ((72, 128, 3), 8, 4, (0, 0)),
        ((4, 84, 84), 8, 4, (0, 0)),
        ((30, 35, 3), 8, 4, (0, 0)),  # the width is no multiple of the stride
        ((30, 35, 3), 8, 4, (1, 2)),
        ((3, 30, 35), 8, 4, (0, 3)),
        ((30, 35, 1), 6, 4, (0, 0)),  # the kernel is no multiple of the stride
        ((30, 35, 1), 6, 4, (2, 1)),
        ((9, 11, 3), 3, 1, (1, 1)),
    ],
)
def test_the_convolution_of_pixels_is_a_plain_convolution_of_pixels_over_255(shape, kernel, stride, padding):
    torch.manual_seed(0)
    space = gym.spaces.Box(0, 255, shape, np.uint8)
    conv = PixelConv2d(ImageShape.of(space), 8, kernel, stride, padding).double()
    x = pixels(space)
    nchw = x if shape[0] < shape[2] else x.permute(0, 3, 1, 2)
    expected = F.conv2d(nchw.double() / 255, conv.weight, conv.bias, stride, padding)
    out = conv(x)
    assert out.shape == expected.shape
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(conv(x.double() / 255), expected)  # floats are not divided again


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((72, 128, 3), ImageShape(3, 72, 128, channels_trail=True)),
        ((4, 84, 84), ImageShape(4, 84, 84, channels_trail=False)),
        ((84, 84, 1), ImageShape(1, 84, 84, channels_trail=True)),
        ((12, 30, 40), ImageShape(12, 30, 40, channels_trail=False)),
        ((9, 9, 17), ImageShape(17, 9, 9, channels_trail=True)),  # boards of go and chess
        ((111, 8, 8), ImageShape(111, 8, 8, channels_trail=False)),
        ((8, 8, 8), ImageShape(8, 8, 8, channels_trail=True)),
    ],
)
def test_the_channels_are_at_the_smaller_end_or_beside_a_square(shape, expected):
    assert ImageShape.of(gym.spaces.Box(0, 255, shape, np.uint8)) == expected


@pytest.mark.parametrize(
    ("encoder", "features"), [("simple", 128 * 3 * 6), ("atari", 64 * 5 * 12), ("resnet", 32 * 9 * 16)]
)
@pytest.mark.parametrize("nonlinearity", ["elu", "relu", "tanh"])
def test_image_encoders_have_the_shapes_of_their_papers(encoder, features, nonlinearity):
    config = ModelConfig(nonlinearity=nonlinearity, pad_images=False)
    module = build_encoder(encoder, DOOM, config)
    assert module.linear[0].in_features == features
    out = module(pixels(DOOM))
    assert out.shape == (2, module.out_size) == (2, 512)
    out.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())


@pytest.mark.parametrize("encoder", ["simple", "atari", "resnet"])
@pytest.mark.parametrize("shape", [(64, 64, 3), (3, 64, 64), (72, 128, 3), (36, 37, 1), (96, 100, 3), (59, 83, 2)])
def test_every_pixel_is_looked_at(encoder, shape):
    assert unseen(encoder, shape, ModelConfig(nonlinearity="tanh")) == (0, 0)


@pytest.mark.parametrize(
    ("shape", "expected"), [((64, 64, 3), (12, 12)), ((72, 128, 3), (4, 12)), ((84, 84, 4), (0, 0))]
)
def test_the_papers_network_overlooks_pixels_at_the_right_and_at_the_bottom(shape, expected):
    assert unseen("simple", shape, ModelConfig(nonlinearity="tanh", pad_images=False)) == expected


def unseen(encoder, shape, config):
    """How many rows and columns of an image change nothing of what the encoder gives; all others do."""
    space = gym.spaces.Box(0, 255, shape, np.uint8)
    image = ImageShape.of(space)
    x = (pixels(space, 1) / 255).requires_grad_()
    build_encoder(encoder, space, config)(x).square().sum().backward()
    matters = x.grad[0].abs().sum(-1 if image.channels_trail else 0) > 0  # [H, W]
    assert matters.shape == (image.height, image.width)
    rows, columns = matters.any(1), matters.any(0)
    assert matters[rows][:, columns].all()
    return int((~rows).sum()), int((~columns).sum())


@pytest.mark.parametrize("encoder", ["simple", "atari"])
def test_images_that_fit_have_the_papers_network(encoder):
    padded, plain = (build_encoder(encoder, ATARI, ModelConfig(pad_images=pads)) for pads in (True, False))
    plain.load_state_dict(padded.state_dict())
    x = pixels(ATARI)
    assert torch.equal(padded(x), plain(x))


def test_without_linear_layers_an_encoder_gives_the_features_of_its_convolutions():
    module = build_encoder("atari", ATARI, ModelConfig(encoder_conv_mlp_layers=()))
    assert module(pixels(ATARI)).shape == (2, module.out_size) == (2, 64 * 7 * 7)


def test_the_mlp_takes_vectors_images_and_integers():
    for space in (VECTOR, DOOM, gym.spaces.Box(0, 9, (2, 3), np.int64)):
        module = build_encoder("mlp", space, ModelConfig(encoder_mlp_layers=(8, 4)))
        assert module(torch.as_tensor(np.stack([space.sample()] * 3))).shape == (3, module.out_size) == (3, 4)


def test_an_image_that_is_too_small_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"image of 20x40 pixels is too small .* --encoder resnet or mlp"):
        build_encoder("simple", gym.spaces.Box(0, 255, (20, 40, 3), np.uint8), ModelConfig())


@pytest.mark.parametrize(
    ("size", "encoder"), [(36, "ConvEncoder"), (35, "ResnetEncoder"), (28, "ResnetEncoder"), (3, "SymbolsEncoder")]
)
def test_the_encoder_that_is_chosen_can_do_with_the_size_of_the_image(size, encoder):
    space = gym.spaces.Dict({"obs": gym.spaces.Box(0, 255, (size, 80, 3), np.uint8)})
    model = build_model(ModelConfig(), space, SPEC)
    (module,) = model.trunk.actor.encoders
    assert type(module).__name__ == encoder
    out = model.step({"obs": pixels(space["obs"])}, torch.zeros(2, 0), torch.ones(2, dtype=torch.bool))
    assert out.value.shape == (2,)


def test_convolutions_of_a_vector_are_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match="--encoder mlp"):
        build_encoder("simple", VECTOR, ModelConfig())


def test_several_observations_are_encoded_side_by_side():
    space = gym.spaces.Dict({"a": DOOM, "items": VECTOR, "b": ATARI})
    config = ModelConfig(encoder="atari", encoder_mlp_layers=(8,), encoder_conv_mlp_layers=(16,))
    model = build_model(config, space, SPEC)
    obs = {key: torch.as_tensor(np.stack([space[key].sample()] * 2)) for key in space}
    assert model.policy_head.in_features == 16 + 8 + 16
    state = torch.zeros(2, 0)
    out = model.step(obs, state, torch.ones(2, dtype=torch.bool))
    for key in space:
        changed = obs | {key: torch.zeros_like(obs[key])}
        assert (model.step(changed, state, torch.ones(2, dtype=torch.bool)).value != out.value).all()


def test_a_registered_encoder_is_found_by_name_in_both_precisions():
    @register_encoder("test_only_linear")
    class Linear(nn.Module):
        def __init__(self, space, config):
            super().__init__()
            self.out_size = 6
            self.layer = nn.Linear(space.shape[0], self.out_size)

        def forward(self, obs):
            return self.layer(obs)

    model = build_model(ModelConfig(encoder="test_only_linear"), gym.spaces.Dict({"obs": VECTOR}), SPEC)
    first = torch.ones(2, dtype=torch.bool)
    for trunk_dtype in (torch.float32, torch.bfloat16):
        model.trunk.to(trunk_dtype)
        assert model.step({"obs": torch.randn(2, 7)}, torch.zeros(2, 0), first).params.dtype == torch.float32
    with pytest.raises(ValueError, match="registered already"):
        register_encoder("test_only_linear")(nn.Linear)


def test_a_registered_model_is_built_by_name():
    class Other(ActorCritic):
        pass

    register_model("test_only_model")(Other)
    assert type(build_model(ModelConfig(model="test_only_model"), gym.spaces.Dict({"obs": VECTOR}), SPEC)) is Other


@pytest.mark.parametrize(("size", "lengths"), [(10_000, [100]), (1500, [50, 50]), (1000, [34, 34, 32]), (1, [1] * 100)])
def test_parts_are_all_rows_in_their_order_and_of_nearly_one_length(size, lengths, monkeypatch):
    monkeypatch.setattr(blocks, "_PART", size)
    rows, seen = torch.arange(3000.0).view(100, 30), []

    def encode(part):
        seen.append(len(part))
        return part * 2.0

    assert torch.equal(in_parts(encode, rows), rows * 2.0)
    assert seen == lengths


def test_a_vector_is_one_part():
    seen = []
    in_parts(lambda part: seen.append(len(part)) or part, torch.zeros(8192, 64))
    assert seen == [8192]


def test_an_encoder_of_a_user_gets_its_images_in_parts_too(monkeypatch):
    seen = []

    @register_encoder("counting_parts")
    class Counting(torch.nn.Flatten):
        out_size = 12

        def __init__(self, space, config):
            super().__init__()

        def forward(self, images):
            seen.append(len(images))
            return super().forward(images).float()

    monkeypatch.setattr(blocks, "_PART", 60)
    space = gym.spaces.Dict({"image": gym.spaces.Box(0, 255, (2, 2, 3), "uint8")})
    network = build_model(ModelConfig(encoder="counting_parts", core="none"), space, ActionSpec((2,), 0))
    state = torch.zeros(2, network.state_size)
    network.unroll({"image": torch.zeros(5, 2, 2, 2, 3, dtype=torch.uint8)}, state, torch.zeros(5, 2, dtype=torch.bool))
    assert seen == [5, 5]
