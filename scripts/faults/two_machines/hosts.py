"""Two machines on this one: network namespaces joined by a cable, which has a bandwidth and can be cut.

They need root, and iproute2.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal

from faults import processes
from faults.session import start

NUM_HOSTS = 2
_PORT = 29500
_ENDS_WITHIN_S = 60.0


def why_impossible() -> str | None:
    """What is missing, in words."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    return f"there is no {missing[0]}: install iproute2" if missing else None


class Host:
    """One machine, whose agent of torchrun is started again whenever it has ended, as an init system would.

    flags: of sf-train, for its ranks.
    """

    def __init__(self, idx: int, folder: Path, flags: Sequence[str], train_dir: Path) -> None:
        self.name, self.interface = f"sf{os.getpid()}h{idx}", f"sf{os.getpid()}v{idx}"
        self.address = f"10.77.0.{idx + 1}"
        self.train_dir = train_dir
        self.is_on = False
        self.agent: subprocess.Popen | None = None
        self._output = folder / f"host_{idx}.log"
        self._num_starts = 0
        agent = [
            *("-m", "torch.distributed.run", "--nnodes", f"1:{NUM_HOSTS}", "--nproc-per-node", "1"),
            *("--max-restarts", "1000", "--rdzv-id", "campaign", "--rdzv-backend", "c10d"),
            *("--rdzv-endpoint", f"10.77.0.1:{_PORT}", "--local-addr", self.address),
            *("--rdzv-conf", f"is_host={int(idx == 0)},last_call_timeout=5,read_timeout=600"),
        ]
        self._command = [sys.executable, *agent, "-m", "sf", *flags, "--train_dir", str(train_dir)]

    def switch_on(self) -> None:
        self.is_on = True
        self.tend()

    def tend(self) -> None:
        """Start the agent again, if it has ended."""
        if not self.is_on or (self.agent is not None and self.agent.poll() is None):
            return
        self._num_starts += 1
        with self._output.open("a") as output:
            output.write(f"--- start {self._num_starts}\n")
            output.flush()
            self.agent = start(
                ["ip", "netns", "exec", self.name, *self._command],
                stdout=output,
                stderr=output,
                # Else an agent that comes later waits for an address that is not told again (torch 2.13).
                env={**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
            )

    def switch_off(self) -> None:
        self.is_on = False
        self.lose_power()

    def ask_to_end(self) -> None:
        """Ctrl-C."""
        self.is_on = False
        assert self.agent is not None
        self.agent.send_signal(signal.SIGINT)

    def lose_power(self) -> None:
        """Every process on it is gone at once."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.agent is not None:
            self.agent.wait()

    def pids(self) -> set[int]:
        found = _run("ip", "netns", "pids", self.name).split()
        return {int(pid) for pid in found if processes.is_alive(int(pid))}

    def agent_pid(self) -> int:
        assert self.agent is not None  # `ip netns exec` has become it
        return self.agent.pid

    def parents(self) -> list[int]:
        """Of its ranks: the children of the agent."""
        return [p.pid for p in processes.below(self.agent_pid()) if p.parent == self.agent_pid() and not p.is_zombie]

    def children(self, role: str) -> list[int]:
        """Processes of its ranks that have this role."""
        found = (process for parent in self.parents() for process in processes.children_of_run(parent))
        return [process.pid for process in found if process.name.startswith(f"{role}-")]


class Network:
    """The hosts, and the cable between them.

    The first host has the store of torchrun. has_shared_disk: of both. megabits: a second, of the cable.
    """

    def __init__(self, folder: Path, flags: Sequence[str], has_shared_disk: bool, megabits: int) -> None:
        self._megabits = megabits
        disks = [folder / ("disk" if has_shared_disk else f"disk_{idx}") for idx in range(NUM_HOSTS)]
        self.hosts = [Host(idx, folder, flags, disk) for idx, disk in enumerate(disks)]

    def __enter__(self) -> Network:
        with ExitStack() as stack:  # so that a command that fails leaves nothing behind, either
            self._build(stack)
            self._built = stack.pop_all()
        return self

    def _build(self, stack: ExitStack) -> None:
        first, second = self.hosts
        for host in self.hosts:
            _run("ip", "netns", "add", host.name)
            stack.callback(_run, "ip", "netns", "del", host.name)  # with its end of the cable
            stack.callback(host.switch_off)
        ends = ((first.interface, "netns", first.name), (second.interface, "netns", second.name))
        _run("ip", "link", "add", *ends[0], "type", "veth", "peer", "name", *ends[1])
        for host in self.hosts:
            inside = ("ip", "netns", "exec", host.name)
            _run(*inside, "ip", "address", "add", f"{host.address}/24", "dev", host.interface)
            _run(*inside, "ip", "link", "set", "lo", "up")
            _run(*inside, "ip", "link", "set", host.interface, "up")
            rate = ("rate", f"{self._megabits}mbit", "burst", "256kb", "latency", "50ms")
            _run(*inside, "tc", "qdisc", "add", "dev", host.interface, "root", "tbf", *rate)

    def __exit__(self, *exc_info: object) -> None:
        """No signal keeps it from that."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, signal.SIG_IGN)
        self._built.close()

    def set_cable(self, state: Literal["up", "down"]) -> None:
        host = self.hosts[0]
        _run("ip", "netns", "exec", host.name, "ip", "link", "set", host.interface, state)

    def tend(self) -> None:
        for host in self.hosts:
            host.tend()

    def wait_until_ended(self) -> set[int]:
        """After they were asked to. Returns the processes that are left."""
        pids = set().union(*(host.pids() for host in self.hosts))
        return processes.wait_until_gone(pids, _ENDS_WITHIN_S)


def _run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
