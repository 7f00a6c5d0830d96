"""Faults of processes and environments: a child or an environment fails, and the run replaces it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from faults import processes
from faults.bookkeeping import NotRecoveredError
from faults.kinds.fault import ALL, LEAGUE, POPULATIONS, TOY, Fault, Harm
from faults.session import Session
from faults.tasks import trigger_of


def signal_child(role: str, signum: int) -> Harm:
    def do(session: Session, rng: Random) -> None:
        name = rng.choice([name for name in session.names() if name.startswith(role)])
        with replaced(session, name) as (pid,):
            os.kill(pid, signum)

    return do


def kill_two_at_once(session: Session, rng: Random) -> None:
    with replaced(session, *rng.sample(session.names(), 2)) as pids:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def kill_while_it_starts(session: Session, rng: Random) -> None:
    name = rng.choice(session.names())
    with replaced(session, name) as (pid,):
        os.kill(pid, signal.SIGKILL)
    with replaced(session, name) as (pid,):
        time.sleep(rng.uniform(0.0, 3.0))
        os.kill(pid, signal.SIGKILL)


def kill_any(session: Session, rng: Random) -> None:
    """Engines, launchers and multiprocessing's own processes included, but not the parent."""
    os.kill(rng.choice(sorted(processes.alive_below(session.pid))), signal.SIGKILL)


def suspend(session: Session, rng: Random) -> None:
    """For longer than a process may hang: yet none is replaced."""
    num_before = session.num_replaced()
    with session.suspended():
        time.sleep(1.5 * session.plan.config.supervision.worker_timeout_s)
    session.wait_for_progress()
    if session.num_replaced() > num_before:
        raise NotRecoveredError("processes were replaced because the whole run was suspended")


def kill_fork_server(module: str, *roles: str) -> Harm:
    """Of the children of these roles; it names that module."""

    def do(session: Session, rng: Random) -> None:
        server = processes.helper(session.pid, module)
        assert server is not None
        with replaced(session, *(name for name in session.names() if name.startswith(roles))):
            os.kill(server, signal.SIGKILL)

    return do


def stop_fork_server(session: Session, rng: Random) -> None:
    """Seen when it is needed."""
    server = processes.helper(session.pid, "sf.rollout.worker")
    assert server is not None
    os.kill(server, signal.SIGSTOP)
    signal_child("rollout", signal.SIGKILL)(session, rng)


def kill_resource_tracker(session: Session, rng: Random) -> None:
    """Of multiprocessing: every start of a process talks to it."""
    tracker = processes.helper(session.pid, "multiprocessing.resource_tracker")
    assert tracker is not None
    os.kill(tracker, signal.SIGKILL)
    signal_child("policy", signal.SIGKILL)(session, rng)


def signal_engine(signum: int) -> Harm:
    def do(session: Session, rng: Random) -> None:
        engine = rng.choice(processes.doom_engines(session.pid))
        os.kill(engine, signum)
        session.wait_until(lambda: engine not in processes.doom_engines(session.pid), "the engine is gone")
        num_engines = session.plan.num_actors
        session.wait_until(lambda: len(processes.doom_engines(session.pid)) == num_engines, "all engines are back")

    return do


def kill_gradient_worker(session: Session, rng: Random) -> None:
    worker = _gradient_worker(session, rng)
    os.kill(worker, signal.SIGKILL)
    session.wait_until(lambda: not processes.is_alive(worker), "the gradient worker is gone")


def stop_gradient_worker(session: Session, rng: Random) -> None:
    """Its learner, which waits for it, hangs then, and is replaced."""
    worker = _gradient_worker(session, rng)
    with replaced(session, "learner-0"):
        os.kill(worker, signal.SIGSTOP)


def _gradient_worker(session: Session, rng: Random) -> int:
    if not processes.gradient_workers(session.pid):  # killed before: a new learner has new ones
        signal_child("learner", signal.SIGKILL)(session, rng)
        session.wait_until(lambda: bool(processes.gradient_workers(session.pid)), "there are gradient workers")
    return rng.choice(processes.gradient_workers(session.pid))


@contextmanager
def replaced(session: Session, *names: str) -> Iterator[list[int]]:
    """Gives the process ids of these children, and waits until others bear their names."""
    pids = {name: session.wait_for_pid(name) for name in names}
    yield list(pids.values())
    for name, pid in pids.items():
        session.wait_for_pid(name, other_than=pid)


# Environments


def env_fault(fault: str, metric: str) -> Harm:
    def do(session: Session, rng: Random) -> None:
        session.wait_for_record()
        before = session.metric(metric)
        trigger = trigger_of(Path(session.plan.config.run.train_dir))
        hidden = trigger.with_name("trigger.new")
        hidden.write_text(fault)
        hidden.rename(trigger)
        session.wait_until(lambda: session.metric(metric) > before, f"{metric} has grown")

    return do


FAULTS = (
    Fault("rollout worker killed", signal_child("rollout", signal.SIGKILL), ALL),
    Fault("policy worker killed", signal_child("policy", signal.SIGKILL), ALL),
    Fault("player worker killed", signal_child("player", signal.SIGKILL), LEAGUE),
    Fault("player worker stopped", signal_child("player", signal.SIGSTOP), LEAGUE),
    Fault("learner killed", signal_child("learner", signal.SIGKILL), ALL),
    Fault("rollout worker stopped", signal_child("rollout", signal.SIGSTOP), ALL),
    Fault("policy worker stopped", signal_child("policy", signal.SIGSTOP), ALL),
    Fault("learner stopped", signal_child("learner", signal.SIGSTOP), ALL),
    Fault("gradient worker killed", kill_gradient_worker, ("toy_sync",)),
    Fault("gradient worker stopped", stop_gradient_worker, ("toy_sync",)),
    Fault("evaluator killed", signal_child("evaluator", signal.SIGKILL), ("own", *POPULATIONS)),
    Fault("evaluator stopped", signal_child("evaluator", signal.SIGSTOP), ("own", *POPULATIONS)),
    Fault("two processes killed at once", kill_two_at_once, tuple(task for task in ALL if task != "toy_sync")),
    Fault("process killed, and again as it starts", kill_while_it_starts, ALL),
    Fault("fork server of the simulators killed", kill_fork_server("sf.rollout.worker", "rollout"), ALL),
    Fault(
        "fork server of the networks killed",
        kill_fork_server("sf.learner.worker", "learner", "policy", "player", "evaluator"),
        ALL,
    ),
    Fault("fork server stopped, and a rollout worker killed", stop_fork_server, ALL),
    Fault("resource tracker killed, and a policy worker", kill_resource_tracker),
    Fault("any process of the run killed", kill_any, ALL),
    Fault("all processes suspended", suspend, ALL),
    Fault("Doom engine killed", signal_engine(signal.SIGKILL), ("doom",)),
    Fault("Doom engine stopped", signal_engine(signal.SIGSTOP), ("doom",)),
    Fault("environment raises", env_fault("raise", "env_faults"), (*TOY, "own", "pair")),
    Fault("environment returns NaN", env_fault("nan_obs", "env_faults"), (*TOY, "own")),
    Fault("reward is NaN", env_fault("nan_reward", "env_faults"), (*TOY, "own")),
    Fault("observation of a wrong shape", env_fault("wrong_shape", "env_faults"), (*TOY, "own")),
    Fault("environment hangs", env_fault("hang", "restarts"), TOY),
    Fault("environment kills its process", env_fault("kill", "restarts"), TOY),
    Fault("NaN in the loss", env_fault("huge_obs", "train/skipped_updates"), ("toy",)),  # a core would bound it
)
