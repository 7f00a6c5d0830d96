"""Bare loops of environments with random actions: what the machine can do at most."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
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
_barrier: Barrier


def simulate(plan: Plan, seconds: float) -> dict[str, Any]:
    """Frames per second (`fps`) of bare loops, one pinned process for each worker.

    Where one fails, the others are ended and RuntimeError is raised.
    """
    context = multiprocessing.get_context("spawn")  # the fork server is the trainer's
    pinned = plan.pin_workers()
    barrier = context.Barrier(plan.num_workers)
    try:
        with ProcessPoolExecutor(plan.num_workers, context, _begin, (barrier,)) as pool:
            try:
                loops = [
                    pool.submit(_measured, plan, worker_idx, pinned.of(worker_idx), seconds)
                    for worker_idx in range(plan.num_workers)
                ]
                return {"fps": sum(loop.result() for loop in as_completed(loops))}
            except BaseException:
                for process in multiprocessing.active_children():
                    process.terminate()  # the pool would wait for their time
                raise
    finally:
        pinned.release()


def _begin(barrier: Barrier) -> None:
    """Begins a process of the pool. barrier: where all loops wait for each other."""
    global _barrier  # noqa: PLW0603  it can only be inherited
    _barrier = barrier
    die_with_creator()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process


def _measured(plan: Plan, worker_idx: int, core: int | None, seconds: float) -> float:
    """Frames per second of one loop."""
    try:
        return _frames_per_second(plan, worker_idx, core, seconds)
    except Exception as error:
        raise RuntimeError(f"the simulation failed: {error}\n\n{traceback.format_exc()}") from None


def _frames_per_second(plan: Plan, worker_idx: int, core: int | None, seconds: float) -> float:
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
    _barrier.wait()
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
