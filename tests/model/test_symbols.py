import gymnasium as gym
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.model.building import build_model
from sf.model.encoders.blocks import flat
from sf.model.encoders.choice import build_encoder, encoder_names

SMALL = ModelConfig(encoder_conv_mlp_layers=(16,), encoder_mlp_layers=(8,))
SPEC = ActionSpec((3,), 0)
MINIGRID = gym.spaces.Box(0, 255, (7, 7, 3), np.uint8)
GLYPHS = gym.spaces.Box(0, 5976, (21, 79), np.int16)
PLANES = gym.spaces.Box(0, 1, (10, 10, 4), np.uint8)
NUMBERS = gym.spaces.Box(-1.0, 1.0, (5,), np.float32)
PHOTO = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)


def drawn(space: gym.spaces.Box, n: int = 3) -> torch.Tensor:
    space.seed(0)
    return torch.as_tensor(np.stack([space.sample() for _ in range(n)]))


@pytest.mark.parametrize(
    "space",
    [
        MINIGRID,
        GLYPHS,
        PLANES,
        gym.spaces.Box(-3, 9, (2, 2), np.int64),
        gym.spaces.Box(0, 6, (2, 5, 9), np.int8),  # channels first
        gym.spaces.Box(0, 127, (4, 5, 40), np.uint8),
        gym.spaces.Box(0, 127, (9, 9, 40), np.uint8),  # of too many channels for a vector for each code
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_layout_of_a_grid_becomes_features_and_every_weight_learns(space, dtype):
    module = build_encoder("symbols", space, SMALL).to(dtype)
    out = module(drawn(space))
    assert out.shape == (3, module.out_size) == (3, 16)
    out.float().square().sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in module.parameters())


def test_a_cell_is_a_linear_layer_on_the_one_hot_codes_of_its_channels():
    space = gym.spaces.Box(2, 6, (3, 4, 2), np.int64)
    module = build_encoder("symbols", space, SMALL)
    codes = drawn(space)
    one_hot = F.one_hot(codes - 2, 5).float()  # [N, H, W, C, codes]
    expected = torch.einsum("nhwck,cke->nhwe", one_hot, module.table)
    torch.testing.assert_close(module._embedded(codes), expected)


def test_channels_first_are_the_same_grid_as_channels_last():
    last = gym.spaces.Box(0, 6, (5, 9, 2), np.int8)
    first = gym.spaces.Box(0, 6, (2, 5, 9), np.int8)
    one, other = build_encoder("symbols", last, SMALL), build_encoder("symbols", first, SMALL)
    other.load_state_dict(one.state_dict())
    cells = drawn(last)
    torch.testing.assert_close(one(cells), other(cells.permute(0, 3, 1, 2)))


def test_a_code_outside_of_the_space_counts_as_the_nearest_inside():
    space = gym.spaces.Box(1, 6, (4, 4), np.int16)
    module = build_encoder("symbols", space, SMALL)
    cells = drawn(space)
    cells[0, 0, 0], cells[1, 1, 1] = 6, 1
    outside = cells.clone()
    outside[0, 0, 0], outside[1, 1, 1] = 3000, -7
    torch.testing.assert_close(module(outside), module(cells))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lowest", [0, -1000, 1000, 20_000_000])
def test_planes_are_0_and_1_wherever_their_two_values_lie(lowest, dtype):
    space = gym.spaces.Box(lowest, lowest + 1, (5, 5, 3), np.int32)
    module, cells = build_encoder("symbols", space, SMALL).to(dtype), drawn(space)
    found = module._scaled(cells)
    assert found.dtype == dtype
    assert torch.equal(found, (cells - lowest).to(dtype))


def test_normalisation_leaves_codes_as_they_are():
    space = gym.spaces.Dict({"glyphs": GLYPHS, "numbers": NUMBERS})
    model = build_model(SMALL, space, SPEC)
    obs = {key: drawn(space[key], 8) for key in space}
    model.update_normalizers({key: rows.view(4, 2, *rows.shape[1:]) for key, rows in obs.items()}, torch.ones(4, 2) > 0)
    normal = model._normal(obs)
    assert normal["glyphs"] is obs["glyphs"]
    assert not torch.equal(normal["numbers"], obs["numbers"])


@pytest.mark.parametrize("core", ["none", "gru", "lstm", "mingru", "transformer"])
def test_large_codes_survive_a_trunk_in_bfloat16(core):
    space = gym.spaces.Dict({"glyphs": GLYPHS, "numbers": NUMBERS})
    config = ModelConfig(encoder_conv_mlp_layers=(16,), encoder_mlp_layers=(8,), core=core, rnn_size=8)
    model = build_model(config, space, SPEC)
    model.trunk.to(torch.bfloat16)
    with torch.no_grad():
        model.trunk.actor.encoders[0].table.zero_()
        model.trunk.actor.encoders[0].table[0, 5001] = 1.0  # bfloat16 has no 5001
    obs = {"glyphs": torch.full((1, 21, 79), 5001, dtype=torch.int16), "numbers": torch.zeros(1, 5)}
    others = obs | {"glyphs": obs["glyphs"] - 1}
    state, first = torch.zeros(1, model.state_size), torch.ones(1, dtype=torch.bool)
    assert model.step(obs, state, first).value != model.step(others, state, first).value


def test_what_is_no_grid_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"encoder is symbols.* --encoder auto or mlp"):
        build_encoder("symbols", NUMBERS, SMALL)


def test_integers_without_bounds_are_an_error_that_says_what_to_do():
    space = gym.spaces.Box(-(2**31), 2**31 - 1, (8, 8), np.int32)
    with pytest.raises(ValueError, match="4,294,967,296 values"):
        build_encoder("symbols", space, SMALL)


@pytest.mark.parametrize(
    ("named", "names"),
    [
        ("auto", ["symbols", "mlp", "simple"]),
        ("resnet", ["symbols", "mlp", "resnet"]),
    ],
)
def test_each_observation_gets_an_encoder_of_its_kind(named, names):
    boxes = {"glyphs": GLYPHS, "numbers": NUMBERS, "photo": PHOTO}
    assert list(encoder_names(named, boxes).values()) == names


def test_planes_of_any_integer_are_a_vector_where_a_policy_is_older():
    boxes = {"board": gym.spaces.Box(0, 1, (6, 7, 2), np.int8)}
    assert encoder_names("auto", boxes) == {"board": "symbols"}
    assert encoder_names("auto", boxes, any_planes=False) == {"board": "mlp"}


@pytest.mark.parametrize("shape", [(13, 11, 5), (5, 13, 11)])
def test_a_board_of_floats_is_convolved_wherever_its_channels_are_and_a_vector_where_a_policy_is_older(shape):
    board = gym.spaces.Box(0.0, 2.0, shape, np.float32)
    assert encoder_names("auto", {"board": board}) == {"board": "planes"}
    assert encoder_names("auto", {"board": board}, float_planes=False) == {"board": "mlp"}
    assert encoder_names("auto", {"large": gym.spaces.Box(0.0, 1e3, shape, np.float32)}) == {"large": "mlp"}
    torch.manual_seed(0)
    encoder = build_encoder("planes", board, SMALL)
    cells = torch.rand(2, 5, 13, 11)
    given = cells if shape[0] == 5 else cells.permute(0, 2, 3, 1)
    expected = encoder.linear(flat(encoder.convolutions(cells)))
    assert torch.allclose(encoder(given), expected, atol=1e-5)


def test_an_encoder_that_is_named_is_for_the_grids_where_there_are_no_images():
    assert encoder_names("resnet", {"grid": MINIGRID, "numbers": NUMBERS}) == {"grid": "resnet", "numbers": "mlp"}
    assert encoder_names("mine:Mine", {"numbers": NUMBERS}) == {"numbers": "mine:Mine"}


def test_a_small_image_with_an_encoder_for_images_is_normalised_as_one():
    space = gym.spaces.Dict({"obs": MINIGRID})
    model = build_model(ModelConfig(encoder="resnet"), space, SPEC)
    assert model._normal({"obs": drawn(MINIGRID)})["obs"].is_floating_point()
