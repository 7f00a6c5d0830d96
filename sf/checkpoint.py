"""Checkpoints: one safetensors file each, with everything that training depends on.

Tensors hold weights, optimiser moments and normalisers; a JSON text in the file's metadata holds the rest (counters,
schedules). Nothing is unpickled on loading. A file is written under a temporary name, synced, and renamed, so a file
that matches the pattern is whole; older ones are removed after that, and the previous one is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import safe_open
from torch import Tensor

from sf.run_dir import write_atomically

_PATTERN = "checkpoint_*.safetensors"
_STATE = "state"  # key of the metadata


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def save(directory: Path, checkpoint: Checkpoint, env_steps: int, keep: int) -> Path:
    """Write a checkpoint named after its env steps, then remove all but the latest `keep`."""
    path = directory / f"checkpoint_{env_steps:012d}.safetensors"
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    data = safetensors.torch.save(tensors, metadata={_STATE: json.dumps(checkpoint.state)})
    write_atomically(path, data)
    for old in sorted(directory.glob(_PATTERN))[:-keep]:
        old.unlink()
    return path


def latest(directory: Path) -> Path | None:
    """The newest checkpoint, or None."""
    return max(directory.glob(_PATTERN), default=None)


def load(path: Path) -> Checkpoint:
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()[_STATE])
        return Checkpoint({name: file.get_tensor(name) for name in file.keys()}, state)  # noqa: SIM118  no mapping
