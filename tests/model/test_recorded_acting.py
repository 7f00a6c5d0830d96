"""A policy that acts by recorded kernels, on a stand-in that calls the function again. On a GPU: test_on_gpu.py."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from late import late_gpu

from sf import gpu
from sf.config import ModelConfig
from sf.envs import ActionSpec
from sf.model.acting import Acting, agree_on
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model
from sf.model.recorded_acting import RecordedActing, size_for

CPU = torch.device("cpu")
SPACE = gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (5,), np.float32), numbers=gym.spaces.Box(-1, 1, (2, 3), np.float32))
SPEC = ActionSpec((3, 2), 2)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(gpu, "Recording", late_gpu().Recording)


@pytest.fixture
def acting():
    torch.manual_seed(0)
    model = ModelConfig(encoder_mlp_layers=(8,), core="gru", rnn_size=8)
    return Acting(inference_model(model, SPACE, SPEC, "float32", CPU), SPEC)


def inputs(acting, num):
    generator = torch.Generator().manual_seed(num)
    obs = {key: torch.rand(num, *box.shape, generator=generator) for key, box in SPACE.items()}
    state = torch.rand(num, acting.network.state_size, generator=generator)
    first = torch.rand(num, generator=generator) < 0.5
    return obs, state, first, *ActionDistribution.noise(SPEC, (num,), CPU, generator)


def assert_same(found, expected):
    torch.testing.assert_close(found[0][:, 2:].view(torch.float32), expected[0][:, 2:].view(torch.float32))
    torch.testing.assert_close(found[0][:, :2], expected[0][:, :2])
    torch.testing.assert_close(found[1], expected[1])


def test_sizes_are_few_and_at_most_half_as_many_again():
    sizes = {num: size_for(num) for num in range(1, 2000)}
    assert all(num <= size for num, size in sizes.items())
    assert all(size <= max(8, 1.5 * num) for num, size in sizes.items())
    assert sorted(set(sizes.values()))[:6] == [8, 12, 16, 24, 32, 48]


@torch.inference_mode()
def test_batches_of_any_size_are_computed_as_by_the_network_also_after_others(acting):
    said = []
    recorded = RecordedActing(acting, CPU, torch.float32, said.append)
    for num in (20, 3, 8, 1, 24, 3):
        assert_same(recorded(*inputs(acting, num)), acting(*inputs(acting, num)))
        with torch.no_grad():
            for weight in acting.network.parameters():
                weight.mul_(1.1)
    assert sorted(recorded._recorded) == [8, 24]
    assert said == []


class Failing:
    def __init__(self, function):
        raise RuntimeError("operation not permitted when stream is capturing\nand more")


class Differing(late_gpu().Recording):
    def replay(self):
        answers, state = super().replay()
        return answers, state + 1


@pytest.mark.parametrize(
    ("recording", "why"),
    [(Failing, "(operation not permitted when stream is capturing)"), (Differing, "its results differ")],
)
@torch.inference_mode()
def test_where_there_is_no_recording_the_network_acts_and_that_is_said_once(recording, why, acting, monkeypatch):
    monkeypatch.setattr(gpu, "Recording", recording)
    said = []
    recorded = RecordedActing(acting, CPU, torch.float32, said.append)
    for num in (3, 20, 3):
        assert_same(recorded(*inputs(acting, num)), acting(*inputs(acting, num)))
    assert len(said) == 1
    assert why in said[0]


@torch.inference_mode()
def test_values_are_compared_in_their_own_scale(acting):
    def scaled(by, wrong=0.0):
        def way(*given):
            answers, state = acting(*given)
            answers[:, -1:] = (answers[:, -1:].view(torch.float32) * by + wrong).view(torch.int32)
            return answers, state

        return way

    assert agree_on(inputs(acting, 20), scaled(1e5), scaled(1e5, wrong=0.5), torch.float32)
    assert not agree_on(inputs(acting, 20), scaled(1.0), scaled(1.0, wrong=0.5), torch.float32)


@torch.inference_mode()
def test_a_size_for_which_there_is_no_memory_runs_without_and_the_others_stay(acting, monkeypatch):
    said = []
    recorded = RecordedActing(acting, CPU, torch.float32, said.append)
    recorded(*inputs(acting, 8))

    def full(function):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(gpu, "Recording", full)
        assert_same(recorded(*inputs(acting, 20)), acting(*inputs(acting, 20)))
    assert said == ["no memory is left on the GPU to record the policy's step for 24 actors"]
    for num in (20, 8, 24, 12):
        assert_same(recorded(*inputs(acting, num)), acting(*inputs(acting, num)))
    assert [size for size, entry in recorded._recorded.items() if entry is None] == [24]
    assert len(said) == 1
