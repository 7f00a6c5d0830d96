"""What may happen to a run whose ranks are on two machines."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from random import Random

from faults.bookkeeping import NotRecoveredError
from faults.kinds.fault import Fault
from faults.two_machines.hosts import Host, Network

_IS_THERE_WITHIN_S = 30.0  # a process that has ended a moment ago is replaced


Harm = Callable[[Network, Host, Random], None]
"""Is done on a host that is drawn."""


def _signal(who: str, signum: int) -> Harm:
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


def _cable_out(seconds: float) -> Harm:
    def do(network: Network, host: Host, random: Random) -> None:
        network.set_cable("down")
        time.sleep(seconds)
        network.set_cable("up")

    return do


def _power_cut(network: Network, host: Host, random: Random) -> None:
    """The machine vanishes without a word: no connection is closed. It comes back after a while."""
    network.set_cable("down")
    host.lose_power()
    time.sleep(20.0)
    network.set_cable("up")


FAULTS = (
    Fault("learner killed", _signal("learner", signal.SIGKILL)),
    Fault("learner stopped", _signal("learner", signal.SIGSTOP)),
    Fault("rollout worker killed", _signal("rollout", signal.SIGKILL)),
    Fault("policy worker killed", _signal("policy", signal.SIGKILL)),
    Fault("parent of a rank killed", _signal("parent", signal.SIGKILL)),
    Fault("parent of a rank stopped", _signal("parent", signal.SIGSTOP)),  # longer than the others have patience
    Fault("agent of torchrun killed", _signal("agent", signal.SIGKILL)),
    Fault("SIGTERM to an agent of torchrun", _signal("agent", signal.SIGTERM)),  # as a scheduler sends it
    Fault("cable out for 10 s", _cable_out(10.0)),
    Fault("cable out for 60 s", _cable_out(60.0)),
    Fault("power cut of a machine", _power_cut),
)
