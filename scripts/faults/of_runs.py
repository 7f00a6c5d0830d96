"""Faults around the processes: files, other runs, and the end of the run itself.

One that ends the run checks how it ended; the campaign resumes it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from faults.of_processes import Harm, replaced
from faults.session import NotRecoveredError, Session
from faults.tasks import flags

# Files


def fill_disk(session: Session, rng: Random) -> None:
    """For the learner, that is."""
    learner = session.pid_of("learner-0")
    assert learner is not None
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
    second = _run_beside(session.flags)
    if second.returncode != 2 or "is running in" not in second.stderr:
        raise NotRecoveredError(f"a second run ended with {second.returncode}: {second.stderr}")


def _run_beside(run_flags: list[str]) -> subprocess.CompletedProcess[str]:
    """Another run, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "sf", *run_flags],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # systems that share the CPU among sessions would leave it little beside the other one
    )


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
    learner = session.pid_of("learner-0")
    assert learner is not None
    os.kill(learner, signal.SIGSTOP)
    stop(signal.SIGINT)(session, rng)
    if "the run goes on from" not in session.output():
        raise NotRecoveredError("nothing was saved for the learner")


def kill_parent(session: Session, rng: Random) -> None:
    session.kill()


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


# Runs that cannot go on


def hopeless(fault: str, probability: float, words: str) -> Harm:
    """A run of its own, beside the other one."""

    def do(session: Session, rng: Random) -> None:
        kwargs = json.dumps({"faults": [fault], "probability": probability})
        train_dir = Path(session.plan.config.run.train_dir)
        with session.suspended():  # one core may be all there is
            run = _run_beside(flags("toy", train_dir, experiment="hopeless", env_kwargs=kwargs, max_restarts=2))
        if run.returncode != 1 or words not in run.stderr:
            raise NotRecoveredError(f"a run that cannot go on ended with {run.returncode}: {run.stderr}")
        shutil.rmtree(train_dir / "hopeless")

    return do
