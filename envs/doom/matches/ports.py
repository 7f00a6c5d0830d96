"""UDP ports for the hosts of network games, no two alike on a machine."""

from __future__ import annotations

import random
import socket
from types import TracebackType

# Below the ports that Linux gives away by itself (ip_local_port_range, 32768 and up by default): none of these is
# taken by a socket that asks for any port, while the engine that will bind it is still starting.
PORTS = range(20_000, 32_000)


class ReservedPort:
    """A free UDP port, kept from all other processes of this machine that reserve one, until it is closed.

    The engine has to bind the port itself, so it cannot be kept by binding it. What is kept is a name: an abstract
    UNIX socket called after the port, which the kernel frees with the process that has it.
    """

    def __init__(self) -> None:
        """Raises RuntimeError where no port is free."""
        for number in random.SystemRandom().sample(PORTS, len(PORTS)):
            self._name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                self._name.bind(f"\0sf-doom-port-{number}")
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    probe.bind(("", number))
            except OSError:
                self._name.close()
                continue
            self.number = number
            return
        raise RuntimeError(f"every UDP port from {PORTS.start} to {PORTS.stop - 1} is taken: start fewer matches")

    def close(self) -> None:
        self._name.close()

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
