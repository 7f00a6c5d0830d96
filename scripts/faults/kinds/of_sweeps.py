"""Faults of a sweep: it ends, or a process of one of its runs does."""

from __future__ import annotations

import os
import signal
from random import Random

from faults import tasks
from faults.bookkeeping import NotRecoveredError
from faults.kinds.fault import SWEEP, Fault, Harm
from faults.kinds.of_processes import replaced
from faults.kinds.of_runs import end_at_its_start
from faults.session import run_beside
from faults.sweeps import SweepSession

_GONE_WITHIN_S = 30.0


def end_sweep(signum: int) -> Harm:
    """Its runs save, even where it is killed."""

    def do(session: SweepSession, rng: Random) -> None:
        session.pick(rng)
        _require_status(session.end(signum), signum)

    return do


def interrupt_sweep_twice(session: SweepSession, rng: Random) -> None:
    session.pick(rng)
    after_s = rng.uniform(1.0, 1.5)  # within a second it would count as one press
    _require_status(session.end(signal.SIGINT, signal.SIGINT, after_s=after_s, saves=False), signal.SIGINT)


def end_sweep_as_it_starts(session: SweepSession, rng: Random) -> None:
    """The end of a sweep, and that of the next one before anybody knows how far it has come."""
    end_sweep(signal.SIGTERM)(session, rng)
    signum = rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
    log = session.log.with_suffix(".starts.log")
    process = session.start_process(log)
    end_at_its_start(process, log, signum, rng.uniform(0.0, 8.0), is_group=True, gone_within_s=_GONE_WITHIN_S)
    session.grid.check()


def kill_parent_of_a_run(session: SweepSession, rng: Random) -> None:
    session.kill_parent_of(session.pick(rng))


def kill_process_of_a_run(*roles: str) -> Harm:
    def do(session: SweepSession, rng: Random) -> None:
        run = session.pick(rng)
        name = rng.choice([name for name in run.names() if name.startswith(roles)])
        with replaced(run, name) as (pid,):
            os.kill(pid, signal.SIGKILL)

    return do


def start_second_sweep(session: SweepSession, rng: Random) -> None:
    session.pick(rng)
    second = run_beside(session.arguments, tasks.folder("sweep"))
    if session.exit_status is None and (second.returncode != 2 or "is running in" not in second.stderr):
        raise NotRecoveredError(f"a second sweep ended with {second.returncode}: {second.stderr}")


def _require_status(status: int, signum: int) -> None:
    if status != (-signum if signum == signal.SIGKILL else 128 + signum):
        raise NotRecoveredError(f"signal {signum}: the sweep ended with status {status}")


FAULTS = (
    Fault("sweep: SIGINT", end_sweep(signal.SIGINT), SWEEP),
    Fault("sweep: SIGTERM", end_sweep(signal.SIGTERM), SWEEP),
    Fault("sweep: SIGKILL", end_sweep(signal.SIGKILL), SWEEP),
    Fault("sweep: SIGINT twice", interrupt_sweep_twice, SWEEP),
    Fault("sweep: ended as it starts", end_sweep_as_it_starts, SWEEP),
    Fault("sweep: parent of a run killed", kill_parent_of_a_run, SWEEP),
    Fault("sweep: rollout or policy worker of a run killed", kill_process_of_a_run("rollout", "policy"), SWEEP),
    Fault("sweep: learner of a run killed", kill_process_of_a_run("learner"), SWEEP),
    Fault("sweep: second one on its directory", start_second_sweep, SWEEP),
)
