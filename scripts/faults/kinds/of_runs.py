"""Faults around the processes: files, other runs, and the end of the run itself."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from faults import bookkeeping, processes
from faults.bookkeeping import NotRecoveredError
from faults.kinds.fault import ALL, TOY, Fault, Harm
from faults.kinds.of_processes import replaced
from faults.machine import patience, permissions_bind
from faults.session import Session, run_beside, start_process
from faults.tasks import flags

_ENDS_WITHIN_S = 60.0
_GONE_WITHIN_S = 10.0

# Files


def fill_disk(session: Session, rng: Random) -> None:
    """For the learner, that is."""
    learner = session.wait_for_pid("learner-0")
    _fail_to_save(
        session,
        lambda: resource.prlimit(learner, resource.RLIMIT_FSIZE, (rng.randrange(4096), resource.RLIM_INFINITY)),
        lambda: resource.prlimit(learner, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
    )


def deny_permission(session: Session, rng: Random) -> None:
    directory = session.run_dir.checkpoints
    _fail_to_save(session, lambda: directory.chmod(0o500), lambda: directory.chmod(0o700))


def _fail_to_save(session: Session, begin: Callable[[], None], end: Callable[[], None]) -> None:
    saved = session.env_steps_saved()
    num_before = session.output().count("no checkpoint")
    begin()
    session.wait_until(lambda: session.output().count("no checkpoint") > num_before, "it says that it cannot save")
    session.wait_for_progress()
    if session.env_steps_saved() < saved:
        raise NotRecoveredError("the last good checkpoint is not whole any more")
    end()
    _wait_for_checkpoint(session)


def remove_run_directory(session: Session, rng: Random) -> None:
    while session.run_dir.path.exists():  # it may be writing there
        shutil.rmtree(session.run_dir.path, ignore_errors=True)
    session.forget_metrics()
    _wait_for_checkpoint(session)
    session.wait_until(session.run_dir.config.exists, "config.yaml is back")


def _wait_for_checkpoint(session: Session) -> None:
    before = session.checkpoints()
    session.wait_until(lambda: set(session.checkpoints()) - set(before), "it saves a checkpoint")


def start_second_run(session: Session, rng: Random) -> None:
    second = run_beside(["-m", "sf", *session.flags], session.folder)
    if second.returncode != 2 or "is running in" not in second.stderr:
        raise NotRecoveredError(f"a second run ended with {second.returncode}: {second.stderr}")


# The end of the run


def stop(signum: int) -> Harm:
    def do(session: Session, rng: Random) -> None:
        session.send_signal(signum)
        _expect_status(session, 128 + signum)

    return do


def interrupt_twice(session: Session, rng: Random) -> None:
    session.send_signal(signal.SIGINT)
    time.sleep(rng.uniform(1.0, 1.5))  # within a second it would count as one press
    if session.exit_status is None:
        session.send_signal(signal.SIGINT)
    _expect_status(session, 128 + signal.SIGINT)


def interrupt_a_replacement(session: Session, rng: Random) -> None:
    name = rng.choice(session.names())
    with replaced(session, name) as (pid,):
        os.kill(pid, signal.SIGKILL)
    time.sleep(rng.uniform(0.0, 1.0))
    stop(signal.SIGINT)(session, rng)


def interrupt_with_a_learner_that_hangs(session: Session, rng: Random) -> None:
    learner = session.wait_for_pid("learner-0")
    os.kill(learner, signal.SIGSTOP)
    stop(signal.SIGINT)(session, rng)
    if "the run resumes from" not in session.output():
        raise NotRecoveredError("nothing was saved for the learner")


def kill_parent(session: Session, rng: Random) -> None:
    below = processes.alive_below(session.pid)
    session.kill()
    if left := processes.wait_until_gone(below, patience(_GONE_WITHIN_S)):
        raise NotRecoveredError(f"processes {sorted(left)} have outlived the parent")
    bookkeeping.require_files_in_order(session.run_dir)


def end_as_it_starts(session: Session, rng: Random) -> None:
    """The end of a run, and that of the next one before anybody knows how far it has come."""
    stop(signal.SIGTERM)(session, rng)
    saved = session.env_steps_saved()
    signum = rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
    log = session.log.with_suffix(".starts.log")
    process = start_process(["-m", "sf", *session.flags], log, session.folder)
    end_at_its_start(process, log, signum, rng.uniform(0.0, 6.0), gone_within_s=_GONE_WITHIN_S)
    bookkeeping.require_files_in_order(session.run_dir)
    if session.env_steps_saved() < saved:
        raise NotRecoveredError(f"{saved} env steps had been saved, and now {session.env_steps_saved()} are")


def end_at_its_start(
    process: subprocess.Popen, log: Path, signum: int, after_s: float, *, is_group: bool = False, gone_within_s: float
) -> None:
    """Send a signal to a program that starts, and require that it ends by it and leaves no process.

    is_group: send it to the whole process group, as a terminal does.
    """
    what = f"signal {signum} as it started"
    try:
        time.sleep(after_s)
        below = processes.alive_below(process.pid)
        (os.killpg if is_group else os.kill)(process.pid, signum)
        status = process.wait(patience(_ENDS_WITHIN_S))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise NotRecoveredError(f"{what}: no end. It said: {log.read_text()[-2000:]}") from None
    if left := processes.wait_until_gone(below, patience(gone_within_s)):
        raise NotRecoveredError(f"{what} left the processes {sorted(left)}")
    # Before Python has come to the program, the signal ends it like any other one.
    if status not in (128 + signum, -signum):
        raise NotRecoveredError(f"{what}: status {status}. It said: {log.read_text()[-2000:]}")


def damage_newest_checkpoint(damage: Callable[[bytes, Random], bytes]) -> Harm:
    def do(session: Session, rng: Random) -> None:
        session.wait_until(lambda: len(session.checkpoints()) > 1, "there are two checkpoints")
        stop(signal.SIGTERM)(session, rng)
        newest = session.checkpoints()[-1]
        newest.write_bytes(damage(newest.read_bytes(), rng))

    return do


def truncated(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data))]


def flipped(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _expect_status(session: Session, status: int) -> None:
    got = session.wait_for_end()
    if got != status:
        raise NotRecoveredError(f"it ended with status {got} instead of {status}")
    session.check_end()


# Runs that cannot go on


def hopeless(fault: str, probability: float, words: str) -> Harm:
    """A run of its own, beside the other one."""

    def do(session: Session, rng: Random) -> None:
        kwargs = json.dumps({"faults": [fault], "probability": probability})
        train_dir = Path(session.plan.config.run.train_dir)
        run_flags = flags("toy", train_dir, experiment="hopeless", env_kwargs=kwargs, max_restarts=2)
        with session.suspended():  # one core may be all there is
            run = run_beside(["-m", "sf", *run_flags])
        if run.returncode != 1 or words not in run.stderr:
            raise NotRecoveredError(f"a run that cannot go on ended with {run.returncode}: {run.stderr}")
        shutil.rmtree(train_dir / "hopeless")

    return do


FAULTS = (
    Fault("disk full", fill_disk, ALL),
    Fault("no permission to save", deny_permission, is_possible=permissions_bind),
    Fault("run directory removed", remove_run_directory, ALL),
    Fault("second run on the directory", start_second_run, ALL),
    Fault("SIGINT", stop(signal.SIGINT), ALL),
    Fault("SIGTERM", stop(signal.SIGTERM), ALL),
    Fault("SIGHUP", stop(signal.SIGHUP), ALL),
    Fault("SIGINT twice", interrupt_twice, ALL),
    Fault("SIGINT while the learner hangs", interrupt_with_a_learner_that_hangs, ALL),
    Fault("SIGINT while a child is replaced", interrupt_a_replacement, ALL),
    Fault("parent killed", kill_parent, ALL),
    Fault("ended as it starts", end_as_it_starts, ALL),
    Fault("newest checkpoint truncated", damage_newest_checkpoint(truncated), ALL),
    Fault("a bit of the newest checkpoint flipped", damage_newest_checkpoint(flipped), ALL),
    Fault("environment that always raises", hopeless("raise", 1.0, "toy_faulty was asked to fail"), TOY),
    Fault("environment that kills again and again", hopeless("kill", 0.05, "has died 3 times within"), TOY),
)
