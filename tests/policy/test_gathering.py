"""The observations of a batch, from shared memory to the network: copied by the host, or read by the GPU in place."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from late import late_gpu

from sf.envs import EnvSpec
from sf.policy import transfers
from sf.shared.rows import OBS
from sf.system.arrays import Field, SharedArrays

SLOTS, ROWS = 6, 4
OBS_SPACE = gym.spaces.Dict(
    picture=gym.spaces.Box(0, 255, (48, 48, 3), np.uint8),  # 6912 bytes, in eights
    odd=gym.spaces.Box(0, 255, (2053,), np.uint8),
    numbers=gym.spaces.Box(-1, 1, (600,)),
    few=gym.spaces.Box(-1, 1, (3,)),
)


@pytest.fixture
def rows():
    fields = [Field(OBS + key, (SLOTS, ROWS, *box.shape), box.dtype) for key, box in OBS_SPACE.items()]
    arrays, rng = SharedArrays([*fields, Field("reward", (SLOTS, ROWS), np.float32)]), np.random.default_rng(0)
    for array in arrays.named(OBS).values():
        array[:] = rng.integers(0, 256, array.shape)
    return arrays


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("can_map", [True, False])
def test_a_batch_has_the_rows_that_were_asked_for(device, can_map, rows, monkeypatch):
    stand_in = late_gpu()
    monkeypatch.setattr(transfers, "gpu", stand_in)
    stand_in.take(device)
    if not can_map:
        monkeypatch.setattr(stand_in, "mapped", lambda memory, device: None)
    gather = transfers.ObsGather(rows, EnvSpec(OBS_SPACE, gym.spaces.Discrete(2)), 5, device)
    assert set(gather._mapped) == ({"picture", "odd", "numbers"} if device != "cpu" and can_map else set())
    for positions in ([3, 17, 0], [23, 1, 1, 2, 22], [5]):
        rows.named(OBS)["picture"][0, 1] += 1  # what is read is what is there now
        gather.stage(np.array(positions))
        batch = gather.there(len(positions))
        for key, array in rows.named(OBS).items():
            expected = torch.from_numpy(array.reshape(SLOTS * ROWS, *array.shape[2:])[positions])
            assert torch.equal(batch[key], expected), key
            assert batch[key].dtype == expected.dtype
