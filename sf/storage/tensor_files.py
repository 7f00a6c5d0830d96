"""Reads and writes checkpoints tensor by tensor: large ones would be in memory several times otherwise.

The files are those of `sf.storage.checkpoint`.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from torch import Tensor

from sf.envs.errors import UsageError
from sf.storage import checkpoint

_NAMES = {  # of dtypes in the format
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ALIGNMENT = 8  # of the first tensor


class TensorFile:
    """A checkpoint whose tensors are read one by one. tensors, state: as of `sf.storage.checkpoint.Checkpoint`."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where the file is damaged or is no checkpoint, OSError where it cannot be read."""
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            checkpoint.require_whole(path, data)
        try:
            with safe_open(path, "pt") as tensors:
                self.state: dict[str, Any] = checkpoint.state_in(tensors.metadata())
                self.tensors: Mapping[str, Tensor] = _Tensors(path, tensors.keys())
        except Exception as error:  # anybody can write a file with a right checksum
            raise UsageError(f"{path} is not a checkpoint of this package ({type(error).__name__}: {error})") from None


class _Tensors(Mapping[str, Tensor]):
    """Reads a tensor each time that it is asked for, and opens the file anew: what was read leaves the memory."""

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        self._path = path
        self._names = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        with safe_open(self._path, "pt") as file:
            return cast("Tensor", file.get_tensor(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def write(path: Path, tensors: Mapping[str, Callable[[], Tensor]], like: Mapping[str, Tensor], state: Any) -> None:
    """Write a checkpoint, of which one tensor is in memory at a time, and wait for the disk.

    tensors: make each, on the CPU. like: have the shapes and dtypes, on any device. Raises OSError.
    """
    header: dict[str, Any] = {"__metadata__": checkpoint.metadata(state)}
    end = 0
    for name in tensors:
        begin, end = end, end + like[name].numel() * like[name].element_size()
        header[name] = {"dtype": _NAMES[like[name].dtype], "shape": [*like[name].shape], "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    head = len(text).to_bytes(8, "little") + text
    place = checkpoint.digest_place(head)
    digest = hashlib.sha256(head[: place.start])
    digest.update(head[place.stop :])
    with path.open("xb") as file:
        file.write(head)
        for name, make in tensors.items():
            tensor = make()
            assert (tensor.shape, tensor.dtype) == (like[name].shape, like[name].dtype), name
            data = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data
            digest.update(data)
            file.write(data)
        file.seek(place.start)
        file.write(digest.hexdigest().encode())
        file.flush()
        os.fsync(file.fileno())
