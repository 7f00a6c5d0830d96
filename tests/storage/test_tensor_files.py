"""Checkpoints that are read and written tensor by tensor are those of sf.storage.checkpoint."""

import pytest
import torch

from sf.envs.errors import UsageError
from sf.storage import checkpoint, tensor_files
from sf.storage.checkpoint import Checkpoint
from sf.storage.tensor_files import TensorFile

TENSORS = {
    "model/matrix": torch.arange(6.0).view(2, 3),
    "model/transposed": torch.arange(6.0).view(2, 3).t(),
    "model/none": torch.zeros(0, 4),
    "model/half": torch.arange(3).bfloat16(),
    "model/count": torch.tensor(3e9, dtype=torch.float64),
    "rng": torch.arange(5, dtype=torch.uint8),
}
STATE = {"env_steps": 12, "config": {"env": 'a "digest":"quoted" one'}}


def require_same(tensors):
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor), name


def test_what_is_written_in_parts_is_read_as_a_whole(tmp_path):
    path = tmp_path / "some.safetensors"
    tensor_files.write(path, {name: lambda name=name: TENSORS[name] for name in TENSORS}, TENSORS, STATE)
    saved = checkpoint.load(path)
    require_same(saved.tensors)
    assert saved.state == STATE


def test_what_is_written_as_a_whole_is_read_in_parts(tmp_path):
    path = tmp_path / "some.safetensors"
    checkpoint.write(path, Checkpoint(TENSORS, STATE))
    file = TensorFile(path)
    require_same(file.tensors)
    assert file.state == STATE
    assert "model/unknown" not in file.tensors


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "some.safetensors"
    checkpoint.write(path, Checkpoint(TENSORS, STATE))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(UsageError, match="damaged"):
        TensorFile(path)
