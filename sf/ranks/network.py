"""Which network interface the ranks use: their ports are bound to its address, and to no other."""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from sf.ranks.place import Place

_SIOCGIFADDR = 0x8915
_NAMES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_LOOPBACK = "lo"
_ELSEWHERE = "192.0.2.1"  # an address that nobody has (RFC 5737): packets to it take the default route


def choose_interface(place: Place) -> None:
    """Tell gloo and NCCL, unless the user has: the one towards the first machine, or loopback where there is one alone.

    By themselves they take what the name of this machine stands for, which is often an address that no other machine
    can reach.
    """
    name = _LOOPBACK if place.size == place.local_size else _interface_to_others()
    if name is not None:
        for variable in _NAMES:
            os.environ.setdefault(variable, name)


def _interface_to_others() -> str | None:
    """On the first machine its own name often stands for loopback, which no other machine can reach."""
    towards_first = interface_towards(os.environ["MASTER_ADDR"])
    return interface_towards(_ELSEWHERE) if towards_first == _LOOPBACK else towards_first


def interface_towards(host: str) -> str | None:
    """The name of the interface whose address packets to `host` bear; None where that is not known."""
    try:
        address = socket.gethostbyname(host)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # sends nothing
            own = probe.getsockname()[0]
    except OSError:
        return None
    # To an address of this machine itself, packets go by loopback, and others come by the interface that has it.
    return next((name for _, name in socket.if_nameindex() if _address(name) == own), None)


def _address(name: str) -> str | None:
    """IPv4, of an interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", name[:15].encode()))
        except OSError:  # it has none
            return None
    return socket.inet_ntoa(answer[20:24])
