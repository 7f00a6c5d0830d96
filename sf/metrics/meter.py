"""What the counters of all processes say: rates, shares of time, and the cores that each role keeps busy.

Linux counts CPU time of the machine and of processes in /proc, in clock ticks. The parent reads them for each record.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sf.metrics.bottleneck import Load
from sf.shared.counters import OF_SEARCH, Counters

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_IDLE = slice(3, 5)  # of the figures of a core: idle, and idle while a disk works
_ALL = slice(0, 8)  # user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user and nice, too
_OF_PROCESS = slice(11, 15)  # of the figures after its name: user, system, and both of its children that have ended


@dataclass(frozen=True)
class CoreSeconds:
    """CPU seconds since the machine, or each process, started. Only differences between two calls are meaningful.

    of_machine: of the cores in question, by all programs. of_role: by role of the children (rollout, policy, learner).
    """

    of_machine: float
    of_role: dict[str, float]


def core_seconds(cores: tuple[int, ...], roles: tuple[str, ...]) -> CoreSeconds:
    """Measures until now. cores: those that count for the machine. Children of this process are named ROLE-NUMBER."""
    of_role = dict.fromkeys(roles, 0.0)
    for child in multiprocessing.active_children():
        role = child.name.partition("-")[0]
        if role in of_role and child.pid is not None:
            of_role[role] += sum(_process_seconds(pid) for pid in _with_descendants(child.pid))
    return CoreSeconds(_machine_seconds(cores), of_role)


def _machine_seconds(cores: tuple[int, ...]) -> float:
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    except OSError:  # a sandbox that hides it
        return 0.0
    ticks = {line[0]: [int(figure) for figure in line[1:]] for line in lines if line[0].startswith("cpu")}
    used = (sum(ticks[f"cpu{core}"][_ALL]) - sum(ticks[f"cpu{core}"][_IDLE]) for core in cores if f"cpu{core}" in ticks)
    return sum(used) / _TICKS_PER_S


def _with_descendants(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):  # it has ended meanwhile
        for children in Path(f"/proc/{pid}/task").glob("*/children"):  # of each of its threads
            for child in children.read_text().split():
                yield from _with_descendants(int(child))


def _process_seconds(pid: int) -> float:
    with suppress(OSError):
        figures = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # a name may hold anything
        return sum(int(figure) for figure in figures[_OF_PROCESS]) / _TICKS_PER_S
    return 0.0


Roles = Mapping[str, Sequence[int]]
"""Rows of the counters by role: rollout, policy, learner, and player where there is a player worker."""

_RECENT_S = 60.0  # smoothed figures cover this much time


@dataclass(frozen=True)
class Machine:
    """cores: that the run may use. num_cores: that it can keep busy; fewer where it has a quota; 0: all of them."""

    cores: tuple[int, ...] = ()
    num_cores: int = 0

    @property
    def most_busy(self) -> int:
        return self.num_cores or len(self.cores)


@dataclass(frozen=True)
class Moment:
    """The counts of all processes at a moment."""

    at: float  # time.perf_counter()
    counts: dict[str, np.ndarray]  # [num_processes] by name
    cpu: CoreSeconds


class Window:
    """The time between two moments."""

    def __init__(self, roles: Roles, machine: Machine, then: Moment, now: Moment) -> None:
        self._roles = roles
        self._machine = machine
        self._then, self._now = then, now
        self.seconds = max(now.at - then.at, 1e-9)
        self._counts = {name: now.counts[name] - then.counts[name] for name in now.counts}

    def count(self, role: str, of: str = "steps") -> float:
        """Returns the count of all processes of a role."""
        return float(self._counts[of][self._roles[role]].sum())

    def rate(self, role: str, of: str = "steps") -> float:
        """The same per second."""
        return self.count(role, of) / self.seconds

    def share(self, name: str, rows: Sequence[int]) -> float:
        """Returns the share of the time that these processes were busy, or waited; the mean over them."""
        return min(1.0, float(self._counts[f"{name}_s"][rows].mean() / self.seconds))  # rounding may exceed 1

    def shares(self, num_policies: int) -> dict[str, float]:
        """Returns all shares by their names in a record. num_policies: of several, each learner has its own, too."""
        shares = {}
        for role, rows in self._roles.items():
            for name in ("busy", "wait", "slot_wait"):
                if name != "slot_wait" or role == "rollout":
                    shares[f"{role}/{name}_share"] = self.share(name, rows)
        if num_policies > 1:
            for policy_id, row in enumerate(self._roles["learner"]):
                for name in ("busy", "wait"):
                    shares[f"policy_{policy_id:02d}/learner/{name}_share"] = self.share(name, [row])
        shares["policy/actions_per_batch"] = self.count("policy") / max(self.count("policy", "calls"), 1.0)
        return shares

    def of_search(self) -> dict[str, float]:
        """Returns what rollout workers count of their searches, by the names in a record; nothing where none search."""
        count = {name: self.count("rollout", name) for name in OF_SEARCH}
        if not count["simulations"]:
            return {}
        leaves, requests = count["leaves"], count["leaf_requests"]
        of_resignation = {}
        if count["searched_games"]:
            of_resignation["search/resigned_share"] = count["resigned_games"] / count["searched_games"]
        if count["would_resign"]:
            of_resignation["search/wrongly_resigned_share"] = count["would_resign_wrongly"] / count["would_resign"]
        return {
            "search/simulations_per_second": self.rate("rollout", "simulations"),
            "search/depth": count["leaf_depth"] / max(leaves, 1.0),
            "search/leaves_per_request": leaves / max(requests, 1.0),
            "search/kept_share": count["kept_simulations"] / (count["kept_simulations"] + count["simulations"]),
            **of_resignation,
        }

    def cores_in_use(self) -> dict[str, float]:
        """Returns how many cores each role keeps busy, and the share of all in use, by the names in a record."""
        then, now = self._then.cpu, self._now.cpu
        # The sum loses what a process has used when it dies.
        of_role = {role: max(0.0, now.of_role[role] - then.of_role[role]) / self.seconds for role in self._roles}
        of_machine = (now.of_machine - then.of_machine) / self.seconds
        machine = self._machine
        in_use = (
            sum(of_role.values()) if machine.most_busy < len(machine.cores) else of_machine
        )  # a quota is for this run
        return {
            "cores/in_use_share": min(1.0, in_use / max(1, machine.most_busy)),
            **{f"cores/{role}": cores for role, cores in of_role.items()},
        }

    def load(self, num_epochs: int, is_on_gpu: bool, is_synchronous: bool) -> Load:
        """Returns what `sf.metrics.bottleneck` judges. num_epochs: of the learner, on the same data."""
        shares, cores = self.shares(num_policies=1), self.cores_in_use()
        busiest = max(self._roles["learner"], key=lambda row: float(self._counts["busy_s"][row]))
        return Load(
            rollout_busy=shares["rollout/busy_share"],
            rollout_wait=shares["rollout/wait_share"],
            slot_wait=shares["rollout/slot_wait_share"],
            policy_busy=shares["policy/busy_share"],
            policy_wait=shares["policy/wait_share"],
            learner_busy=self.share("busy", [busiest]),
            learner_wait=self.share("wait", [busiest]),
            has_iteration=bool(self._counts["calls"][busiest] > 0),
            player_busy=shares.get("player/busy_share", 0.0),
            actions_per_batch=shares["policy/actions_per_batch"],
            cores_in_use=cores["cores/in_use_share"],
            cores={role: cores[f"cores/{role}"] for role in self._roles},
            num_cores=self._machine.most_busy,
            num_epochs=num_epochs,
            is_on_gpu=is_on_gpu,
            is_synchronous=is_synchronous,
            window_s=self.seconds,
        )


class Meter:
    """Looks at the counters now and then."""

    def __init__(self, counters: Counters, roles: Roles, machine: Machine) -> None:
        self._counters = counters
        self._roles = roles
        self._machine = machine
        self._beginning = self._moment()
        self._previous = self._beginning
        self._recent = deque([self._beginning])
        self._first_sampled: Moment | None = None  # the first look that found env steps

    @property
    def has_recent(self) -> bool:
        return len(self._recent) >= 2

    def look(self) -> Window:
        """The time since the last look."""
        then, now = self._previous, self._moment()
        self._previous = now
        self._recent.append(now)
        if self._first_sampled is None and self._num_rows(now) > 0:
            self._first_sampled = now
        while now.at - self._recent[1].at > _RECENT_S:
            self._recent.popleft()
        return self._window(then, now)

    def recent(self) -> Window:
        """The last minute or so, up to the last look."""
        return self._window(self._recent[0], self._recent[-1])

    def forget_recent(self) -> None:
        """Shares mean nothing while processes start."""
        self._recent = deque([self._moment()])

    def whole(self) -> Window:
        """From the beginning until now."""
        nothing = {name: np.zeros_like(counts) for name, counts in self._beginning.counts.items()}
        return self._window(Moment(self._beginning.at, nothing, self._beginning.cpu), self._moment())

    def sampled(self) -> tuple[int, float]:
        """Rows that rollout workers have written until the last look, and how many a second since the first."""
        now, then = self._recent[-1], self._first_sampled
        rate = 0.0 if then is None or now is then else self._window(then, now).rate("rollout", of="rows")
        return self._num_rows(now), rate

    def _num_rows(self, moment: Moment) -> int:
        return int(moment.counts["rows"][self._roles["rollout"]].sum())

    def _window(self, then: Moment, now: Moment) -> Window:
        return Window(self._roles, self._machine, then, now)

    def _moment(self) -> Moment:
        at, counts = self._counters.snapshot()
        return Moment(at, counts, core_seconds(self._machine.cores, tuple(self._roles)))
