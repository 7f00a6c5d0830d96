"""What the learners of one policy have in common: sums over the samples of all, and the gradients of all.

Whatever a step takes over samples is a sum divided by another: the loss, the moments of advantages, observations and
returns, and the metrics. With the sums of all ranks in place of its own, each rank does what one learner with all
samples would do, and their weights stay the same.
"""

from __future__ import annotations

import inspect
import os
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed import PrefixStore

from sf.ranks.place import Place
from sf.ranks.rendezvous import connect
from sf.system.portable import fcntl
from sf.system.processes.child import SaidError

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


class Ranks:
    """One learner alone. rank: from 0 to size - 1."""

    rank = 0
    size = 1
    waited_s = 0.0  # for numbers of other ranks, since the start

    def totals(self, *sums: Tensor) -> list[Tensor]:
        """The sums of all ranks, element by element, in one message. sums: of any shapes; they carry no gradients."""
        return list(sums)

    def share(self, data: bytes, source: int = 0) -> bytes:
        """Returns what rank `source` has; data of the others does not matter."""
        return data

    def joined(self, network: nn.Module) -> nn.Module:
        """Returns the network with gradients that are means over all ranks. All begin with the weights of the first."""
        return network

    def have_the_same(self, numbers: Tensor) -> bool:
        """Returns whether `numbers` are the same to the bit on all ranks. If not, at least one of them says so."""
        return True

    def leave(self) -> None:
        """At the end, when nobody waits for this rank any more."""


ALONE = Ranks()
_LEAVES_WITHIN = timedelta(seconds=10)
_NETWORKS = ("gloo", "NCCL", "TCPStore")  # as their errors name them


class DistributedRanks(Ranks):
    """The ranks of a process group of torch.distributed, which must do the same calls in the same order.

    Gradients are averaged in buckets while the backward pass goes on (Li et al. 2020, "PyTorch Distributed: Experiences
    on Accelerating Data Parallel Training", section 3.2).
    """

    def __init__(
        self, device: torch.device, store: torch.distributed.Store, compresses_gradients: bool = False
    ) -> None:
        """device: of the network. store: of these ranks. They are those of the default group."""
        self._device = device
        self._store = store
        self._compresses_gradients = compresses_gradients
        self.rank = torch.distributed.get_rank()
        self.size = torch.distributed.get_world_size()

    @torch.no_grad()
    def totals(self, *sums: Tensor) -> list[Tensor]:
        # Numbers of the host go by gloo, on a GPU as well: they wait for no kernel.
        message = torch.cat([each.detach().to(sums[0].device, torch.float64).flatten() for each in sums])
        began = time.perf_counter()
        torch.distributed.all_reduce(message)
        self.waited_s += time.perf_counter() - began
        parts = message.split([each.numel() for each in sums])
        return [part.view(each.shape).to(each.device, each.dtype) for part, each in zip(parts, sums, strict=True)]

    def share(self, data: bytes, source: int = 0) -> bytes:
        is_source = self.rank == source
        (size,) = self.totals(torch.tensor(len(data) if is_source else 0))
        message = torch.empty(int(size), dtype=torch.uint8)
        if is_source and data:
            message.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        torch.distributed.broadcast(message, src=source)
        return message.numpy().tobytes()

    def joined(self, network: nn.Module) -> nn.Module:
        joined = nn.parallel.DistributedDataParallel
        # Statistics are the same on all ranks in any case: nothing has to be sent before a forward pass.
        is_new = "forward_sync_buffers" in inspect.signature(joined).parameters
        options: dict[str, Any] = {"forward_sync_buffers" if is_new else "broadcast_buffers": False}
        if self._device.type != "cpu":
            options["device_ids"] = [self._device]
        # Each step of a network that leaves parameters out would wait for their gradients. To look for them takes time.
        modules = {type(part).__module__.partition(".")[0] for part in network.modules()}
        options["find_unused_parameters"] = not modules <= {"sf", "torch"}  # a user's own may leave some out
        result = joined(network, **options)
        if self._compresses_gradients:
            result.register_comm_hook(None, _as_bfloat16)
        return result

    def have_the_same(self, numbers: Tensor) -> bool:
        own = torch.tensor(zlib.crc32(numbers.detach().cpu().contiguous().numpy().tobytes()), dtype=torch.float64)
        return float(self.totals(own)[0]) == self.size * float(own)  # whole numbers, far below 2^53

    def leave(self) -> None:
        # A store whose process stands still answers nothing, not even that time is up: a thread is left behind in it.
        farewell = threading.Thread(target=self._wait_for_those_who_leave, name="farewell", daemon=True)
        farewell.start()
        farewell.join(_LEAVES_WITHIN.total_seconds())
        if not farewell.is_alive():
            torch.distributed.destroy_process_group()

    def _wait_for_those_who_leave(self) -> None:
        """Waits, because a rank that closes its connections first may take the last message from another one."""
        leaving = [f"leaves/{rank}" for rank in range(self.size)]
        with suppress(RuntimeError):  # one has died, or the store has gone: nobody waits for this rank
            self._store.set(leaving[self.rank], "")
            self._store.wait(leaving, _LEAVES_WITHIN)


def _as_bfloat16(state, bucket):
    """PyTorch's own hook, which it refuses for gloo by its name. It takes no types that are strings."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (  # noqa: PLC0415  slow to import
        bf16_compress_hook,
    )

    return bf16_compress_hook(state, bucket)


@contextmanager
def said_where_others_end(ranks: Ranks) -> Iterator[None]:
    """Says in one sentence what torch.distributed says where another rank has gone."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        if ranks.size == 1 or not any(name in text for name in _NETWORKS):
            raise
        raise SaidError(f"another rank has ended, or cannot be reached: {text.partition('. ')[0]}") from None


def join(place: Place, device: torch.device, policy_id: int = 0, compresses_gradients: bool = False) -> Ranks:
    """The learners of this policy on the ranks that have met; waits until all have come.

    By NCCL on GPUs, by gloo on CPUs, and on both for numbers of the host.
    """
    if place.is_alone:
        return ALONE
    choose_interface(place)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    store = PrefixStore(f"learners/{policy_id}", connect(place))
    torch.distributed.init_process_group(backend, store=store, rank=place.rank, world_size=place.size)
    return DistributedRanks(device, store, compresses_gradients)
