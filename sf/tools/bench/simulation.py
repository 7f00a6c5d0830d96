"""Bare loops of environments with random actions: what the machine can do at most."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np

from sf import envs
from sf.envs import ActionSpec, StepResult
from sf.envs.spaces.actions import ACTION_MASK, random_actions
from sf.envs.spaces.observations import obs_arrays
from sf.run.plan import Plan
from sf.system.processes.creator import die_with_creator

_WARMUP_S = 1.0


def simulate(plan: Plan, seconds: float) -> dict[str, Any]:
    """Frames per second (`fps`) of bare loops, one pinned process for each worker.

    Where one fails, the others are ended and RuntimeError is raised with its message.
    """
    context = multiprocessing.get_context("spawn")  # the fork server is the trainer's
    barrier = context.Barrier(plan.num_workers)
    pinned = plan.pin_workers()
    loops: dict[Connection, SpawnProcess] = {}  # by where its result arrives
    try:
        for worker_idx in range(plan.num_workers):
            results, end_of_child = context.Pipe(duplex=False)
            loop = context.Process(
                target=_run, args=(plan, worker_idx, pinned.of(worker_idx), seconds, barrier, end_of_child)
            )
            loop.start()
            end_of_child.close()
            loops[results] = loop
        return {"fps": sum(_results(loops))}
    finally:
        for results, loop in loops.items():
            loop.terminate()
            loop.join()
            results.close()
        pinned.release()


def _results(loops: Mapping[Connection, SpawnProcess]) -> Iterator[float]:
    """The result of each process, in the order in which they come."""
    waiting = dict(loops)
    while waiting:
        ready = connection.wait([*waiting, *(loop.sentinel for loop in waiting.values())])
        for results, loop in list(waiting.items()):
            if results in ready or loop.sentinel in ready:
                del waiting[results]
                said = _said(results, loop)
                if isinstance(said, str):
                    raise RuntimeError(f"the simulation failed: {said}")
                yield said


def _said(results: Connection, loop: SpawnProcess) -> float | str:
    """The result of one process, or what went wrong in it."""
    with suppress(EOFError):
        if results.poll():
            return results.recv()
    loop.join()
    return f"{loop.name} ended with exit code {loop.exitcode}"


def _run(plan: Plan, worker_idx: int, core: int | None, seconds: float, barrier: Barrier, results: Connection) -> None:
    """Body of a process: sends frames per second, or what went wrong."""
    die_with_creator()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    try:
        results.send(_frames_per_second(plan, worker_idx, core, seconds, barrier))
    except Exception as error:
        results.send(f"{error}\n\n{traceback.format_exc()}")


def _frames_per_second(plan: Plan, worker_idx: int, core: int | None, seconds: float, barrier: Barrier) -> float:
    config = plan.config
    if core is not None:
        os.sched_setaffinity(0, {core})
    num_envs = config.sampler.num_envs_per_worker
    group = envs.make_group(
        config.run.env, num_envs, config.environment, seed=0, first_env_idx=worker_idx * num_envs, core=core
    )
    num_actors = group.num_actors
    rng = np.random.default_rng(worker_idx)
    action = ActionSpec.of(plan.spec.action_space)
    arrays = obs_arrays(plan.spec.obs_space, num_actors)
    obs, mask = {key: list(rows) for key, rows in arrays.items()}, arrays.get(ACTION_MASK)
    result = StepResult.empty(num_actors)
    group.reset(obs)
    barrier.wait()
    start = time.perf_counter()
    measured_from, steps = 0.0, 0
    while (now := time.perf_counter() - start) < seconds + _WARMUP_S:
        if measured_from == 0.0 and now >= _WARMUP_S:
            measured_from, steps = now, 0
        # As in a run, agents that wait for their turn take no step.
        steps += num_actors if mask is None else int((mask > 0).reshape(num_actors, -1).any(axis=1).sum())
        group.step(*random_actions(rng, action, num_actors, mask), obs, result)
    group.close()
    return steps * plan.spec.frameskip / (now - measured_from)
