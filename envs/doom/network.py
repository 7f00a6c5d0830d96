"""A network of its own for the engines of a match, with nothing in it but a loopback interface.

An engine listens on all addresses of its machine, and there is no setting for that. So where the kernel lets an
ordinary user make a network namespace, the engines of a match get one: nobody outside can reach their ports, and no
two matches can ask for the same one.

Run as a script (a bare interpreter with one thread, as the kernel demands) this makes the namespace, and waits until
its parent holds it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x1000_0000, 0x4000_0000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


class PrivateNetwork:
    """The namespace; it ends with its last holder. fds: of its user namespace and its network, for `launcher.py`."""

    def __init__(self) -> None:
        """Raises OSError where the kernel does not allow it, as in most containers."""
        command = [sys.executable, "-I", "-S", __file__]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as maker:
            assert maker.stdout is not None
            if maker.stdout.read(1) != b"!":
                raise OSError("no network namespace")
            self.fds = tuple(os.open(f"/proc/{maker.pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net"))

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    os.write(1, b"!")
    os.read(0, 1)  # the end of the pipe


if __name__ == "__main__":
    main()
