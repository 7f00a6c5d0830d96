"""Frames per second of each layer of the system, measured in one go on one machine.

    python scripts/bench_fps.py --env doom_battle --num_workers 2 --num_envs_per_worker 16 --seconds 20

Layers, each with the same environments on the same cores:

    simulation   a bare loop of random actions in one process a worker: what the machine can do at most
    sampler      rollout workers, queues and shared memory, with random actions and no network
    inference    the same with the real policy workers; trajectories are given back unread
    training     everything

The layers are measured in turn, `--rounds` times; the table shows the median of each and its share of the simulation,
and how the parts of each layer spend their time. Any flag of sf-train may follow.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import envs
from envs import ActionSpec, StepResult
from sf import cli
from sf.learner.state import LearnerArgs
from sf.learner.update import Updater
from sf.learner.worker import learner
from sf.plan import Plan, make_plan
from sf.policy.worker import PolicyWorkerArgs, policy_worker
from sf.policy_memory import PolicyMemory, Readers
from sf.processes import Reports
from sf.queues import StopRequested
from sf.run_dir import RunDir
from sf.starter import LearnerBody, PolicyBody
from sf.stopping import StopFlag
from sf.trainer import Run

_REPORT_EVERY_S = 0.25
_SIMULATION_WARMUP_S = 1.0
_START_UP_AT_MOST_S = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="measured time of a layer in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", nargs="+", default=list(_LAYERS), choices=list(_LAYERS))
    parser.add_argument("--json", type=Path, help="write the result here, too")
    own, flags = parser.parse_known_args()
    results: dict[str, list[dict[str, Any]]] = {layer: [] for layer in own.layers}
    with tempfile.TemporaryDirectory() as train_dir:
        config = cli.parse([*flags, "--train_dir", train_dir, "--experiment", "bench"], prog="bench_fps.py")
        config = config.replace(restart_behavior="overwrite", summaries_every_sec=1e6, save_every_sec=1e6)
        plan = make_plan(config)
        for round_idx in range(own.rounds):
            for layer in own.layers:
                result = _LAYERS[layer](plan, own.seconds)
                results[layer].append(result)
                print(f"round {round_idx + 1} {layer}: {result['fps']:,.0f} frames/s", file=sys.stderr)
    _print_table(plan, results)
    if own.json:
        own.json.write_text(json.dumps({"flags": flags, "cores": os.cpu_count(), "results": results}, indent=2) + "\n")


def simulate(plan: Plan, seconds: float) -> dict[str, Any]:
    """Bare loops: one pinned process a worker."""
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
    obs = {key: list(np.zeros((num_actors, *box.shape), box.dtype)) for key, box in plan.spec.obs_space.items()}
    result = StepResult.empty(num_actors)
    group.reset(obs)
    barrier.wait()
    start = time.perf_counter()
    measured_from, steps = 0.0, 0
    while (now := time.perf_counter() - start) < seconds + _SIMULATION_WARMUP_S:
        if measured_from == 0.0 and now >= _SIMULATION_WARMUP_S:
            measured_from, steps = now, 0
        group.step(*_random_actions(rng, action, num_actors), obs, result)
        steps += num_actors
    results.put(steps * plan.spec.frameskip / (now - measured_from))
    group.close()


def _random_actions(rng: np.random.Generator, action: ActionSpec, count: int) -> tuple[np.ndarray, np.ndarray]:
    discrete = rng.integers(0, action.discrete_sizes, (count, len(action.discrete_sizes)), dtype=np.int32)
    return discrete, rng.uniform(-1, 1, (count, action.num_continuous)).astype(np.float32)


def random_policy_worker(reports: Reports, args: PolicyWorkerArgs) -> None:
    """A policy worker without a network."""
    rng = np.random.default_rng(0)
    action = ActionSpec.of(args.spec.action_space)
    channel, rows, counters = args.channel, args.rows, args.counters
    reports.send("ready")
    while True:
        waiting_since = time.perf_counter()
        counters.waiting()
        try:
            groups = channel.take()
        except StopRequested:
            return
        counters.working()
        busy_since = time.perf_counter()
        numbers = channel.numbers(groups)
        slots, t, _ = channel.rows(groups, numbers)
        rows["discrete"][slots, t], rows["continuous"][slots, t] = _random_actions(rng, action, len(slots))
        channel.answer(groups, numbers)
        now = time.perf_counter()
        counters.add(steps=len(slots), calls=1, wait_s=busy_since - waiting_since, busy_s=now - busy_since)


def draining_learner(reports: Reports, args: LearnerArgs) -> None:
    """A learner that gives every slot back unread."""
    _drain(reports, args)


def publishing_learner(reports: Reports, args: LearnerArgs) -> None:
    """The same, after publishing weights once, so that policy workers can act."""
    device = torch.device(args.memory.device)
    memory = PolicyMemory.create(args.memory)
    action = ActionSpec.of(args.spec.action_space)
    updater = Updater(args.config, args.spec.obs_space, action, args.bfloat16, device)
    memory.publish(updater.flat_weights(), updater.version)
    Readers(memory, args.readers)
    _drain(reports, args)


def _drain(reports: Reports, args: LearnerArgs) -> None:
    reports.send("ready", env_steps=0, seconds_before=0.0, lost_steps=0)
    counters = args.counters
    env_steps, reported_at = 0, time.perf_counter()
    while not args.stop.is_set():
        waiting_since = time.perf_counter()
        counters.waiting()
        try:
            slots = args.slots.take(at_most=1024)
        except StopRequested:
            break
        counters.working()
        busy_since = time.perf_counter()
        args.slots.give_back(slots)
        samples = len(slots) * args.config.sampler.rollout
        env_steps += samples
        now = time.perf_counter()
        counters.add(steps=samples, wait_s=busy_since - waiting_since, busy_s=now - busy_since)
        if now - reported_at > _REPORT_EVERY_S:
            reported_at = now
            reports.send("train", env_steps=env_steps)
    reports.send("finished", env_steps=env_steps)


class _TimedReports(Reports):
    """Ends the run some time after its first training report: rates are taken from there on."""

    def __init__(self, reports: Reports, stop: StopFlag, seconds: float) -> None:
        self._reports = reports
        self._stop = stop
        self._seconds = seconds
        self._end: float | None = None

    def send(self, kind: str, **record: Any) -> None:
        self._reports.send(kind, **record)
        if kind == "train":
            now = time.monotonic()
            self._end = self._end or now + self._seconds
            if now >= self._end:
                self._stop.set()


def _timed(body: LearnerBody, seconds: float, reports: Reports, args: LearnerArgs) -> None:
    body(_TimedReports(reports, args.stop, seconds), args)


def _run_layer(
    policy_body: PolicyBody = policy_worker, learner_body: LearnerBody = learner
) -> Callable[[Plan, float], dict[str, Any]]:
    def measure(plan: Plan, seconds: float) -> dict[str, Any]:
        run_dir = RunDir.at(plan.config.run.train_dir, "bench")
        run_dir.prepare(plan.config)
        config = plan.config.replace(train_for_seconds=_START_UP_AT_MOST_S + seconds)
        timed_learner = functools.partial(_timed, learner_body, seconds)
        run = Run(
            dataclasses.replace(plan, config=config), run_dir, policy_body=policy_body, learner_body=timed_learner
        )
        summary = run.run()
        shares = {
            name: value for name, value in summary.items() if name.endswith("_share") and not name.startswith("train/")
        }
        return {"fps": summary["steady_env_frames_per_second"], **shares}

    return measure


def _print_table(plan: Plan, results: dict[str, list[dict[str, Any]]]) -> None:
    sampler = plan.config.sampler
    table = Table(
        title=f"{plan.config.run.env}: {plan.num_workers} workers x {sampler.num_envs_per_worker} envs, "
        f"{len(plan.cores)} cores, {plan.device}"
    )
    for column in ("layer", "frames/s (median)", "rounds", "share of simulation", "time of the parts"):
        table.add_column(column, justify="left" if column in ("layer", "time of the parts") else "right")
    medians = {layer: statistics.median(r["fps"] for r in rounds) for layer, rounds in results.items()}
    for layer, rounds in results.items():
        ratios = [
            r["fps"] / s["fps"] for r, s in zip(rounds, results.get("simulation", []), strict=False) if s["fps"] > 0
        ]
        parts = [f"{name[:-6]} {100 * value:.0f}%" for name, value in rounds[-1].items() if name.endswith("_share")]
        table.add_row(
            layer,
            f"{medians[layer]:,.0f}",
            " ".join(f"{r['fps']:,.0f}" for r in rounds),
            f"{100 * statistics.median(ratios):.0f}%" if ratios else "-",
            "\n".join(parts),
        )
    Console(width=120).print(table)


_LAYERS: dict[str, Callable[[Plan, float], dict[str, Any]]] = {
    "simulation": simulate,
    "sampler": _run_layer(policy_body=random_policy_worker, learner_body=draining_learner),
    "inference": _run_layer(learner_body=publishing_learner),
    "training": _run_layer(),
}

if __name__ == "__main__":
    main()
