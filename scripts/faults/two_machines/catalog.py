"""What may happen to a run whose ranks are on two machines."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from faults.bookkeeping import NotRecoveredError
from faults.two_machines.hosts import Host, Network

_IS_THERE_WITHIN_S = 30.0  # a process that has ended a moment ago is replaced


@dataclass(frozen=True)
class RankFault:
    """do: on a host that is drawn."""

    name: str
    do: Callable[[Network, Host, Random], None]


def _drawn(find: Callable[[], Sequence[int]], what: str, random: Random) -> int:
    """One of the processes that `find` gives. Raises NotRecoveredError where there is none for a while."""
    until = time.monotonic() + _IS_THERE_WITHIN_S
    while not (pids := find()):
        if time.monotonic() > until:
            raise NotRecoveredError(f"a machine has no {what} for {_IS_THERE_WITHIN_S:.0f} s")
        time.sleep(0.1)
    return random.choice(pids)


def _kill(role: str) -> Callable[[Network, Host, Random], None]:
    def do(network: Network, host: Host, random: Random) -> None:
        os.kill(_drawn(lambda: host.children(role), role, random), signal.SIGKILL)

    return do


def _stop_learner(network: Network, host: Host, random: Random) -> None:
    os.kill(_drawn(lambda: host.children("learner"), "learner", random), signal.SIGSTOP)


def _kill_parent(network: Network, host: Host, random: Random) -> None:
    os.kill(_drawn(host.parents, "parent", random), signal.SIGKILL)


def _stop_parent(network: Network, host: Host, random: Random) -> None:
    """For longer than the others have patience."""
    os.kill(_drawn(host.parents, "parent", random), signal.SIGSTOP)


def _kill_agent(network: Network, host: Host, random: Random) -> None:
    os.kill(host.agent_pid(), signal.SIGKILL)


def _ask_agent_to_end(network: Network, host: Host, random: Random) -> None:
    """As a scheduler does that wants the machine back."""
    os.kill(host.agent_pid(), signal.SIGTERM)


def _cable_out(seconds: float) -> Callable[[Network, Host, Random], None]:
    def do(network: Network, host: Host, random: Random) -> None:
        network.cut()
        time.sleep(seconds)
        network.mend()

    return do


def _power_cut(network: Network, host: Host, random: Random) -> None:
    """The machine vanishes without a word: no connection is closed. It comes back after a while."""
    network.cut()
    host.lose_power()
    time.sleep(20.0)
    network.mend()


FAULTS = (
    RankFault("learner killed", _kill("learner")),
    RankFault("learner stopped", _stop_learner),
    RankFault("rollout worker killed", _kill("rollout")),
    RankFault("policy worker killed", _kill("policy")),
    RankFault("parent of a rank killed", _kill_parent),
    RankFault("parent of a rank stopped", _stop_parent),
    RankFault("agent of torchrun killed", _kill_agent),
    RankFault("SIGTERM to an agent of torchrun", _ask_agent_to_end),
    RankFault("cable out for 10 s", _cable_out(10.0)),
    RankFault("cable out for 60 s", _cable_out(60.0)),
    RankFault("power cut of a machine", _power_cut),
)
