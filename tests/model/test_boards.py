import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from sf.config import ModelConfig
from sf.envs import Planes, UsageError
from sf.envs.spaces.actions import ActionSpec
from sf.model.building import build_model
from sf.model.encoders.choice import build_encoder, encoder_names

SMALL = ModelConfig(encoder_conv_mlp_layers=(16,), encoder_mlp_layers=(8,))
SPEC = ActionSpec((3,), 0)
BOARD = Planes(5, 6, 7)


@pytest.mark.parametrize(("encoder", "least"), [("planes", 6), ("map", 2)])
@pytest.mark.parametrize("space", [BOARD, Planes(1, 1, 1), Planes(3, 40, 9)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_board_of_any_size_becomes_features_and_every_weight_learns(encoder, least, space, dtype):
    module = build_encoder(encoder, space, SMALL).to(dtype)
    before = {name: weight.detach().clone() for name, weight in module.named_parameters() if "weight" in name}
    optimizer = torch.optim.Adam(module.parameters(), 0.01)
    for _ in range(2):  # a residual block begins as the identity: what is before its last weights learns after these
        out = module(torch.randn(3, *space.shape).to(dtype))
        assert out.shape == (3, module.out_size) == (3, 16)
        optimizer.zero_grad()
        out.float().square().sum().backward()
        optimizer.step()
    assert len(before) >= least
    assert all((weight != before[name]).any() for name, weight in module.named_parameters() if name in before)


def test_what_happens_on_a_square_reaches_the_features_of_its_neighbours_alone():
    module = build_encoder("planes", Planes(1, 12, 12), SMALL)
    board = torch.zeros(2, 1, 12, 12)
    board[1, 0, 0, 0] = 1.0

    def changed():
        without, with_piece = module.convolutions(board)
        return (without != with_piece).any(0)

    assert changed()[:2, :2].any()
    assert not changed()[2:].any()  # the blocks add nothing yet
    for weight in module.convolutions.parameters():
        torch.nn.init.normal_(weight)
    assert changed()[5, 5]
    assert not changed()[6:].any()  # five convolutions of 3x3 reach five squares far
    assert not changed()[:, 6:].any()


def test_the_cells_of_a_map_are_halved_until_there_are_six_a_side():
    module = build_encoder("map", Planes(5, 20, 33), SMALL)
    assert module.convolutions(torch.zeros(2, 5, 20, 33)).shape == (2, 32, 3, 5)
    assert module.linear[0].in_features == 32 * 3 * 5


@pytest.mark.parametrize("encoder", ["planes", "map"])
def test_integers_in_steps_are_seen_as_the_numbers_that_they_stand_for(encoder):
    config = dataclasses.replace(SMALL, encoder=encoder)
    models = {}
    for step in (None, 0.1):
        torch.manual_seed(1)
        models[step] = build_model(config, gym.spaces.Dict({"board": Planes(5, 6, 7, step)}), SPEC)
    integers = torch.randint(-128, 128, (4, 5, 6, 7), dtype=torch.int8)
    state, first = torch.zeros(4, 0), torch.ones(4, dtype=torch.bool)
    by_steps = models[0.1].step(models[0.1]._normal({"board": integers}), state, first)
    as_numbers = models[None].step(models[None]._normal({"board": integers * 0.1}), state, first)
    assert by_steps.params.std() > 0
    torch.testing.assert_close(by_steps.params, as_numbers.params)
    by_steps.params.square().sum().backward()
    as_numbers.params.square().sum().backward()
    for ours, theirs in zip(models[0.1].parameters(), models[None].parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("encoder", ["planes", "map"])
def test_boards_are_not_normalised_and_numbers_beside_them_are(encoder):
    space = gym.spaces.Dict({"board": BOARD, "numbers": gym.spaces.Box(-1.0, 1.0, (5,), np.float32)})
    model = build_model(dataclasses.replace(SMALL, encoder=encoder), space, SPEC)
    obs = {"board": torch.full((4, 1, *BOARD.shape), 0.25), "numbers": torch.randn(4, 1, 5) + 3}
    model.update_normalizers(obs, torch.ones(4, 1, dtype=torch.bool))
    normal = model._normal({key: rows.flatten(0, 1) for key, rows in obs.items()})
    assert (normal["board"] == 0.25).all()
    assert abs(normal["numbers"].mean()) < 0.1
    assert model.step(normal, torch.zeros(4, 0), torch.ones(4, dtype=torch.bool)).params.shape == (4, 3)


def test_the_space_selects_the_encoder_and_mlp_flattens():
    spaces = {"board": BOARD, "numbers": gym.spaces.Box(-1.0, 1.0, (5,), np.float32)}
    assert encoder_names("auto", spaces) == {"board": "planes", "numbers": "mlp"}
    assert encoder_names("mlp", spaces) == {"board": "mlp", "numbers": "mlp"}
    model = build_model(ModelConfig(encoder="mlp"), gym.spaces.Dict({"board": BOARD}), SPEC)
    assert model.obs_norm.normalizers  # as any vector


@pytest.mark.parametrize("encoder", ["planes", "map"])
def test_a_box_that_does_not_say_where_its_channels_are_is_no_board(encoder):
    with pytest.raises(UsageError, match=r"sf.envs.Planes.*--encoder auto or mlp"):
        build_encoder(encoder, gym.spaces.Box(-np.inf, np.inf, BOARD.shape, np.float32), SMALL)
