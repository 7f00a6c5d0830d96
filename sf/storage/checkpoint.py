"""Checkpoints: one safetensors file each, with everything that training depends on.

Tensors hold weights, optimiser moments and normalisers; a JSON text in the file's metadata holds the rest (counters,
schedules). Nothing is unpickled on loading.

A name has two numbers. The first grows by one with every save and says which is the newest. The second is the env
steps, which may fall after a return to an earlier state. A file is written under a temporary name, synced, and renamed.
It carries the SHA-256 of all its other bytes, which shows damage by a failing disk or a broken copy.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from sf.envs.errors import UsageError
from sf.storage.checkpoint_names import files_in, newest_first
from sf.storage.run_dir import write_atomically
from sf.system.messages import say

_STATE = "state"  # keys of the metadata
_DIGEST = "digest"
_NO_DIGEST = "0" * 64  # in the place of the digest while it is computed
_DIGEST_FOLLOWS = b'"digest":"'  # once in a file: any text in the header has its quotes escaped

MODEL = "model/"  # prefix of the weights among the tensors
OPTIMIZER = "optimizer/"  # prefix of the moments: optimizer/NAME OF THE WEIGHT/NAME OF THE MOMENT


class UnreadableError(UsageError):
    """A checkpoint cannot be read now, and may be whole."""


@dataclass(frozen=True)
class Checkpoint:
    """Holds the content of a file."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]

    @property
    def weights(self) -> dict[str, Tensor]:
        """Returns the weights by their names in the model."""
        return {name[len(MODEL) :]: tensor for name, tensor in self.tensors.items() if name.startswith(MODEL)}


def save(directory: Path, checkpoint: Checkpoint, at_env_steps: int, keep: int) -> Path:
    """Write a checkpoint, then remove all but the latest `keep`. Only one process may write to a directory.

    Raises OSError where it cannot be written. The earlier ones stay whole, and the caller may try again. One that
    cannot be removed stays as well.
    """
    path = _next_path(directory, "checkpoint", at_env_steps)
    write_atomically(path, encode(checkpoint))
    for old in newest_first(directory)[keep:]:
        with suppress(OSError):
            old.unlink()
    return path


def latest(directory: Path) -> Path | None:
    """The newest whole checkpoint; None where there is no checkpoint at all.

    Newer ones that are not whole are renamed, and the user is told. Nothing is deleted, and `save` does not count them
    among those that it keeps. Raises ValueError where none is whole, one cannot be read (UnreadableError) or
    `directory` is a file; nothing is renamed then.
    """
    require_folder(directory)
    try:
        return _latest(directory)
    except PermissionError as error:
        raise UnreadableError(f"{error.filename}: {error.strerror}: change its permissions") from None


def load_latest(directory: Path) -> tuple[Path, Checkpoint]:
    """Reads the newest whole checkpoint while the run may write. Raises ValueError without one."""
    require_folder(directory)
    for path in newest_first(directory):
        try:
            saved = load(path)
        except FileNotFoundError:
            if path.is_symlink():
                say(f"{path} is a link to a file that is not there")
                continue
            return load_latest(directory)  # the run has removed it meanwhile, and has newer ones
        except ValueError as error:
            say(str(error))
            continue
        return path, saved
    raise UsageError(f"{directory} has no complete checkpoint: train first, for longer than --save_every_sec")


def without_optimizer(checkpoint: Checkpoint) -> Checkpoint:
    """Returns what it takes to act."""
    weights = {name: tensor for name, tensor in checkpoint.tensors.items() if name.startswith(MODEL)}
    return Checkpoint(weights, checkpoint.state)


def write(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint under a name of the caller's. Raises OSError where it cannot be written."""
    write_atomically(path, encode(checkpoint))


def save_milestone(directory: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint that is kept for good, under a new name. Only one process may call it. Raises OSError.

    A resumed run never looks for one: `directory` is not that of the checkpoints.
    """
    path = _next_path(directory, "milestone", checkpoint.state["env_steps"])
    write_atomically(path, encode(checkpoint))
    return path


def load(path: Path) -> Checkpoint:
    """Raises ValueError where the file is damaged or is no checkpoint, OSError where it cannot be read."""
    data = _whole_bytes(path)
    try:
        saved = decode(data)
    except Exception as error:  # anybody can write a file with a right checksum
        raise UsageError(f"{path} is not a checkpoint of this package ({type(error).__name__}: {error})") from None
    if not isinstance(saved.state, dict):
        raise UsageError(f"{path} is not a checkpoint of this package (its state is not a mapping)")
    return saved


def encode(checkpoint: Checkpoint) -> bytes:
    """The content of a file."""
    data = safetensors.torch.save(_apart(checkpoint.tensors), metadata(checkpoint.state))
    place = digest_place(data)
    return b"".join((data[: place.start], _digest(data), data[place.stop :]))


def metadata(state: Any) -> dict[str, str]:
    """Returns what the header of a file says beside its tensors. The digest is still to be put in its place."""
    return {_STATE: json.dumps(state), _DIGEST: _NO_DIGEST}


def state_in(found: Mapping[str, str]) -> dict[str, Any]:
    """Returns the state in the metadata of a file. Raises ValueError for none."""
    state = json.loads(found[_STATE])
    if not isinstance(state, dict):
        raise ValueError("its state is not a mapping")
    return state


def fingerprint(checkpoint: Checkpoint) -> str:
    """The same for two checkpoints if and only if their tensors are, in whichever file they lie."""
    return hashlib.sha256(safetensors.torch.save(_apart(checkpoint.tensors))).hexdigest()


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Dense, in the memory of the host, and no two in the same: a network may have one weight under two names."""
    out: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        dense = tensor.detach().cpu().contiguous()
        place = dense.untyped_storage().data_ptr()
        out[name] = dense.clone() if place in places else dense
        places.add(place)
    return out


def weights_of(checkpoint: Checkpoint) -> str:
    """The `fingerprint` of what it takes to play: the same with and without the state of an optimiser."""
    return fingerprint(without_optimizer(checkpoint))


def decode(data: bytes) -> Checkpoint:
    """The checkpoint in the content of a file that is known to be whole."""
    header_end = 8 + int.from_bytes(data[:8], "little")  # the format: length of the header, the header, the tensors
    state = json.loads(json.loads(data[8:header_end])["__metadata__"][_STATE])
    return Checkpoint(_with_symlog_scale(safetensors.torch.load(data), state), state)


def _with_symlog_scale(tensors: dict[str, Tensor], state: Any) -> dict[str, Tensor]:
    """Adds the statistics of symlog returns to a checkpoint from before they existed: a scale of 1 that never moves."""
    prefix = f"{MODEL}value_norm.log_size."
    config = state.get("config") if isinstance(state, dict) else None
    if not isinstance(config, dict) or config.get("value_scale") != "symlog" or f"{prefix}mean" in tensors:
        return tensors
    numbers = {"mean": 0.0, "var": 1.0, "count": 1e18}
    return {**tensors, **{prefix + name: torch.tensor(number, dtype=torch.float64) for name, number in numbers.items()}}


def require_folder(directory: Path) -> None:
    """It need not exist."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file, but must be the folder of checkpoints: move it away")


def _latest(directory: Path) -> Path | None:
    broken: dict[Path, str] = {}
    for path in newest_first(directory):
        try:
            _whole_bytes(path)
        except (FileNotFoundError, ValueError) as error:
            broken[path] = str(error)
            continue
        except PermissionError:
            raise
        except OSError as error:  # what cannot be read now may be the newest and whole
            raise UnreadableError(
                f"{path} cannot be read now ({error.strerror}), though it may be whole: start again when it can, or "
                "move it away to go on from the one before"
            ) from None
        for skipped, reason in broken.items():
            aside = skipped.rename(f"{skipped}.corrupt")
            say(f"{reason}: renamed to {aside.name}, and {path.name} is taken instead")
        return path
    if broken:
        raise UsageError(
            f"no checkpoint in {directory} can be used: {'; '.join(broken.values())}. Put a whole one there, or start "
            "over with --restart_behavior restart, which moves this run aside"
        )
    return None


def _next_path(directory: Path, kind: str, at_env_steps: int) -> Path:
    """The path of the next save. Renamed checkpoints count, so no number comes twice."""
    for left_over in directory.glob(f".{kind}_*.tmp"):  # by a process that was killed in here
        left_over.unlink()
    numbers = [int(name[1]) for path in files_in(directory) if (name := re.match(rf"{kind}_(\d+)_", path.name))]
    return directory / f"{kind}_{max(numbers, default=0) + 1:06d}_{at_env_steps:012d}.safetensors"


def _whole_bytes(path: Path) -> bytes:
    """The content of the file. Raises ValueError where a byte of it is changed or missing."""
    if not stat.S_ISREG(path.stat().st_mode):  # to read a pipe would wait for ever
        raise UsageError(f"{path} is not a regular file")
    data = path.read_bytes()
    require_whole(path, data)
    return data


def require_whole(path: Path, data: bytes | mmap.mmap) -> None:
    """Raises UsageError where a byte of the content of a file is changed or missing."""
    if data[digest_place(data)] != _digest(data):
        raise UsageError(f"{path} is damaged (its checksum does not match its content)")


def _digest(data: bytes | mmap.mmap) -> bytes:
    """SHA-256 in hexadecimal digits, over all bytes but its own."""
    place = digest_place(data)
    with memoryview(data) as view, view[: place.start] as before, view[place.stop :] as behind:
        digest = hashlib.sha256(before)
        digest.update(behind)
    return digest.hexdigest().encode()


def digest_place(data: bytes | mmap.mmap) -> slice:
    """Finds the digest; an empty slice in a file without one."""
    key = data.find(_DIGEST_FOLLOWS)
    begin = key + len(_DIGEST_FOLLOWS)
    return slice(begin, begin + len(_NO_DIGEST)) if key >= 0 else slice(0, 0)
