"""A private network for the engines of a match, with nothing in it but a loopback interface, and UDP ports for hosts.

An engine listens on all addresses of its machine, and there is no setting for that. So where the kernel lets an
ordinary user make a network namespace, the engines of a match get one: nobody outside can reach their ports, and no
two matches can ask for the same one.

Run as a script (a bare interpreter with one thread, as the kernel demands) this makes the namespace and hands it over.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import socket
import struct
import subprocess
import sys
from types import TracebackType

# Below the ports that Linux gives away by itself (ip_local_port_range, 32768 and up by default): none of these is
# taken by a socket that asks for any port, while the engine that will bind it is still starting.
PORTS = range(20_000, 32_000)
CLONE_NEWUSER, CLONE_NEWNET = 0x1000_0000, 0x4000_0000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


class PrivateNetwork:
    """The namespace; it ends with its last holder. fds: of its user namespace and its network, for `launcher.py`."""

    def __init__(self) -> None:
        """Raises OSError where the kernel does not allow it, as in most containers."""
        ours, makers = socket.socketpair()
        with ours, makers:
            command = [sys.executable, "-I", "-S", __file__, str(makers.fileno())]
            with subprocess.Popen(command, pass_fds=[makers.fileno()], stderr=subprocess.DEVNULL):
                makers.close()
                _, self.fds, _, _ = socket.recv_fds(ours, 1, 2)
        if not self.fds:  # it has ended
            raise OSError("the kernel makes no network namespace for this process")

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)


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


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    # The owner could not open them: to it, this process is a stranger now.
    fds = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")]
    with socket.socket(fileno=int(sys.argv[1])) as owner:
        socket.send_fds(owner, [b"!"], fds)


if __name__ == "__main__":
    main()
