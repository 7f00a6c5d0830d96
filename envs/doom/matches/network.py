"""A network of its own for the engines of a match, with nothing in it but a loopback interface.

An engine listens on all addresses of its machine, and there is no setting for that. So where the kernel lets an
ordinary user make a network namespace, the engines of a match get one: nobody outside can reach their ports, and no
two matches can ask for the same one.

Run as a script (a bare interpreter with one thread, as the kernel demands) this makes the namespace and hands it over.
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
