"""Bare loops of environments with random actions: what the machine can do at most."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any

import numpy as np

import envs
from envs import ActionSpec, StepResult
from envs.observations import obs_arrays
from sf.plan import Plan

_WARMUP_S = 1.0


def simulate(plan: Plan, seconds: float) -> dict[str, Any]:
    """Frames per second (`fps`) of one pinned process a worker."""
    context = multiprocessing.get_context("spawn")  # the fork server is the trainer's
    barrier = context.Barrier(plan.num_workers)
    results = context.SimpleQueue()
    loops = [
        context.Process(target=_simulation_loop, args=(plan, i, seconds, barrier, results))
        for i in range(plan.num_workers)
    ]
    for loop in loops:
        loop.start()
    frames_per_second = sum(results.get() for _ in loops)
    for loop in loops:
        loop.join()
    return {"fps": frames_per_second}


def _simulation_loop(plan: Plan, worker_idx: int, seconds: float, barrier: Any, results: Any) -> None:
    config = plan.config
    core = plan.core_of(worker_idx)
    if core is not None:
        os.sched_setaffinity(0, {core})
    num_envs = config.sampler.num_envs_per_worker
    group = envs.make_group(
        config.run.env, num_envs, config.environment, seed=0, first_env_idx=worker_idx * num_envs, core=core
    )
    num_actors = group.num_actors
    rng = np.random.default_rng(worker_idx)
    action = ActionSpec.of(plan.spec.action_space)
    obs = {key: list(rows) for key, rows in obs_arrays(plan.spec.obs_space, num_actors).items()}
    result = StepResult.empty(num_actors)
    group.reset(obs)
    barrier.wait()
    start = time.perf_counter()
    measured_from, steps = 0.0, 0
    while (now := time.perf_counter() - start) < seconds + _WARMUP_S:
        if measured_from == 0.0 and now >= _WARMUP_S:
            measured_from, steps = now, 0
        group.step(*random_actions(rng, action, num_actors), obs, result)
        steps += num_actors
    results.put(steps * plan.spec.frameskip / (now - measured_from))
    group.close()


def random_actions(rng: np.random.Generator, action: ActionSpec, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform: discrete [count, D] int32, continuous [count, C] float32."""
    discrete = rng.integers(0, action.discrete_sizes, (count, len(action.discrete_sizes)), dtype=np.int32)
    return discrete, rng.uniform(-1, 1, (count, action.num_continuous)).astype(np.float32)
