"""The cores that the rollout workers of a run are pinned to, spread over those that other runs use least.

Runs know of each other by names of sockets: a run that pins a worker to core 3 takes the first free one of
`sf-core/3/0`, `sf-core/3/1` and so on. The kernel frees a name with the process that took it, however that ends; a name
is no file, so nothing is left behind, and nobody can connect to it. A container with a network of its own sees its own
runs alone.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path

_NAMES = Path("/proc/net/unix")


class PinnedCores:
    """Of each worker its core, chosen once: a run does not move later."""

    def __init__(self, cores: Sequence[int], num_workers: int, prefix: str = "sf-core") -> None:
        """cores: that the workers may use. prefix: of the names, which tests have of their own."""
        self._names: list[int] = []  # descriptors of the sockets that hold them
        self._prefix = prefix
        self._of_worker = self._choose(cores, num_workers)

    def __del__(self) -> None:
        self.release()

    def of(self, worker_idx: int) -> int | None:
        """The core of a worker, None where workers are not pinned."""
        return self._of_worker[worker_idx]

    def release(self) -> None:
        """The run has ended: others may count on its cores."""
        while self._names:
            os.close(self._names.pop())

    @classmethod
    def nowhere(cls, num_workers: int) -> PinnedCores:
        """The workers run where the kernel lets them."""
        pinned = cls((), 0)
        pinned._of_worker = [None] * num_workers
        return pinned

    def _choose(self, cores: Sequence[int], num_workers: int) -> list[int | None]:
        taken = self._taken_names()
        chosen: list[int | None] = []
        for _ in range(num_workers):
            while True:
                core = min(cores, key=lambda core: len(taken.get(core, ())))
                numbers = taken.setdefault(core, set())
                number = next(number for number in range(len(numbers) + 1) if number not in numbers)
                numbers.add(number)
                if self._take(f"{self._prefix}/{core}/{number}"):
                    break  # else another run was faster: look again for the least used
            chosen.append(core)
        return chosen

    def _take(self, name: str) -> bool:
        """Take a name; False where another process has it. Where names cannot be taken at all, nobody has it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
            try:
                holder.bind(b"\0" + name.encode())
            except OSError as error:
                return error.errno != errno.EADDRINUSE
            self._names.append(holder.detach())
            return True

    def _taken_names(self) -> dict[int, set[int]]:
        """Numbers of the names that are taken, by core; none where the kernel does not tell."""
        try:
            lines = _NAMES.read_text(errors="replace").splitlines()
        except OSError:
            return {}
        taken: dict[int, set[int]] = {}
        for line in lines:
            name = re.search(rf"@{re.escape(self._prefix)}/(\d+)/(\d+)$", line)
            if name is not None:
                taken.setdefault(int(name[1]), set()).add(int(name[2]))
        return taken
