"""Checkpoints: one safetensors file each, with everything that training depends on.

Tensors hold weights, optimiser moments and normalisers; a JSON text in the file's metadata holds the rest (counters,
schedules). Nothing is unpickled on loading. A file is written under a temporary name, synced, and renamed, so a file
that matches the pattern is whole; older ones are removed after that, and the previous one is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import safe_open
from torch import Tensor

from sf.run_dir import write_atomically

_PATTERN = "checkpoint_*.safetensors"
_STATE = "state"  # key of the metadata

MODEL = "model/"  # prefix of the weights among the tensors


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def save(directory: Path, checkpoint: Checkpoint, at_env_steps: int, keep: int) -> Path:
    """Write a checkpoint named after its env steps, then remove all but the latest `keep`."""
    path = directory / f"checkpoint_{at_env_steps:012d}.safetensors"
    if path.exists():  # nothing was trained since
        return path
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    data = safetensors.torch.save(tensors, metadata={_STATE: json.dumps(checkpoint.state)})
    write_atomically(path, data)
    for old in sorted(directory.glob(_PATTERN))[:-keep]:
        old.unlink()
    return path


def latest(directory: Path) -> Path | None:
    """The newest checkpoint, or None."""
    return max(directory.glob(_PATTERN), default=None)


def env_steps(path: Path) -> int:
    """Env steps that the run had when it was saved."""
    return int(path.stem.removeprefix("checkpoint_"))


def check_fits(path: Path, weight_shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises ValueError where the checkpoint holds another network than one with these weights."""
    with safe_open(path, framework="pt") as file:
        names = [name for name in file.keys() if name.startswith(MODEL)]  # noqa: SIM118  no mapping
        saved = {name[len(MODEL) :]: tuple(file.get_slice(name).get_shape()) for name in names}
    if saved != dict(weight_shapes):
        different = sorted({name for name, _ in saved.items() ^ weight_shapes.items()})
        raise ValueError(
            f"{path} holds another network than the flags describe (they differ in {', '.join(different[:3])}): "
            "leave the flags of the model as they were, or name another --experiment"
        )


def load(path: Path) -> Checkpoint:
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()[_STATE])
        return Checkpoint({name: file.get_tensor(name) for name in file.keys()}, state)  # noqa: SIM118  no mapping
