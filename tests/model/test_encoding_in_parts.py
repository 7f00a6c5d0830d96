import gymnasium as gym
import pytest
import torch

from sf.config import ModelConfig
from sf.envs.spaces.actions import ActionSpec
from sf.model.building import build_model
from sf.model.encoders import blocks
from sf.model.encoders.blocks import in_parts
from sf.model.registry import register_encoder


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
