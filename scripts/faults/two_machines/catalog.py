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


def _signal(who: str, signum: int) -> Callable[[Network, Host, Random], None]:
    """Returns a fault that signals one of the processes of a host that are `who`: a role, parent or agent.

    Raises NotRecoveredError where there is none for a while.
    """

    def pids(host: Host) -> Sequence[int]:
        if who == "agent":
            return [host.agent_pid()]
        return host.parents() if who == "parent" else host.children(who)

    def do(network: Network, host: Host, random: Random) -> None:
        until = time.monotonic() + _IS_THERE_WITHIN_S
        while not (found := pids(host)):
            if time.monotonic() > until:
                raise NotRecoveredError(f"a machine has no {who} for {_IS_THERE_WITHIN_S:.0f} s")
            time.sleep(0.1)
        os.kill(random.choice(found), signum)

    return do


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
    RankFault("learner killed", _signal("learner", signal.SIGKILL)),
    RankFault("learner stopped", _signal("learner", signal.SIGSTOP)),
    RankFault("rollout worker killed", _signal("rollout", signal.SIGKILL)),
    RankFault("policy worker killed", _signal("policy", signal.SIGKILL)),
    RankFault("parent of a rank killed", _signal("parent", signal.SIGKILL)),
    RankFault("parent of a rank stopped", _signal("parent", signal.SIGSTOP)),  # longer than the others have patience
    RankFault("agent of torchrun killed", _signal("agent", signal.SIGKILL)),
    RankFault("SIGTERM to an agent of torchrun", _signal("agent", signal.SIGTERM)),  # as a scheduler sends it
    RankFault("cable out for 10 s", _cable_out(10.0)),
    RankFault("cable out for 60 s", _cable_out(60.0)),
    RankFault("power cut of a machine", _power_cut),
)
