"""GPU memory that several processes see: the learner shares weights with its policy workers in this way."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from torch import Tensor

from sf import gpu
from sf.check.probe import ProbeError

_NUMBERS = 1 << 20
_ANSWER_WITHIN_S = 15.0


def shared(device: str, first: Connection, second: Connection) -> str:
    """Two others map memory of this process, one after the death of the other; both see what is written later.

    [2, N] float32: row 0 is written here, row 1 by whoever has mapped it.
    """
    gpu.take(device)
    memory = gpu.shared_zeros((2, _NUMBERS), device)
    victim = _share(memory, device, first)
    _exchange(memory, first, 1.0)
    _exchange(memory, first, 2.0)
    os.kill(victim, signal.SIGKILL)
    _require_end(first)
    _share(memory, device, second)
    _exchange(memory, second, 3.0)
    return "another process maps it, both see what is written later, and it outlives a reader that is killed"


def map_and_answer(owner: Connection) -> str:
    """A partner: maps what it is sent. It answers each message with what it reads, and writes the negative of it."""
    with suppress(EOFError, OSError):
        gpu.take(owner.recv())
        memory = gpu.receive(owner)
        owner.send(os.getpid())
        while True:
            owner.recv()
            lowest, highest = memory[0].min(), memory[0].max()
            memory[1].copy_(-memory[0])
            memory[1, :1].cpu()  # waits for the device
            owner.send((float(lowest), float(highest)))
    return ""


def _share(memory: Tensor, device: str, reader: Connection) -> int:
    """The process id of the reader."""
    reader.send(device)
    gpu.send(memory, reader)
    return _answer(reader)


def _exchange(memory: Tensor, reader: Connection, number: float) -> None:
    memory[0].fill_(number)
    memory[0, :1].cpu()  # waits for the device
    reader.send("look")
    seen = _answer(reader)
    if seen != (number, number):
        raise ProbeError(f"the owner wrote {number:g}, and the other process read from {seen[0]:g} to {seen[1]:g}")
    written = (float(memory[1].min()), float(memory[1].max()))
    if written != (-number, -number):
        raise ProbeError(f"the other process wrote {-number:g}, and the owner read from {written[0]:g}, {written[1]:g}")


def _answer(reader: Connection) -> Any:
    if not reader.poll(_ANSWER_WITHIN_S):
        raise ProbeError(f"the process that maps it gave no answer within {_ANSWER_WITHIN_S:g} s")
    try:
        return reader.recv()
    except (EOFError, OSError):
        raise ProbeError("the process that maps it died") from None


def _require_end(reader: Connection) -> None:
    if reader.poll(_ANSWER_WITHIN_S):
        with suppress(EOFError, OSError):
            reader.recv()
            raise ProbeError("a process that was killed still answers")
        return
    raise ProbeError(f"a process that was killed was not gone within {_ANSWER_WITHIN_S:g} s")
