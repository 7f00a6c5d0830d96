"""The layers of the system, each measured alone, with the same environments on the same cores.

simulation   a bare loop of random actions in one process a worker: what the machine can do at most
sampler      rollout workers, queues and shared memory, with random actions and no network
inference    the same with the real policy workers; trajectories are given back unread
training     everything

Bodies of processes that do less take the place of the real ones.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from sf.envs import ActionSpec
from sf.envs.spaces.actions import ACTION_MASK, random_actions
from sf.learner.args import LearnerArgs
from sf.learner.update import Updater
from sf.learner.worker import learner
from sf.policy.worker import PolicyWorkerArgs
from sf.run.children.roles.role import Body
from sf.run.lifetime import Run
from sf.run.plan import Plan
from sf.shared.queues import StopRequested
from sf.shared.rows import OBS
from sf.shared.weights import PolicyWorkers, SharedWeights
from sf.storage.run_dir import RunDir
from sf.system import gpu
from sf.system.processes.reports import LearnerFinished, LearnerReady, Ready, Report, Reports, Trained
from sf.system.processes.stopping import StopFlag
from sf.system.processes.torch_runtime import configure
from sf.tools.bench.simulation import simulate

_REPORT_EVERY_S = 0.25
Measure = Callable[[Plan, float], dict[str, Any]]
"""(plan, seconds) -> `fps`, frames per second over that time, and of a run the shares of time of its parts."""
_START_UP_AT_MOST_S = 600.0
_NO_OTHER_END = {"train_for_env_steps": None, "train_for_env_frames": None, "stop_at_return": None}


def random_policy_worker(reports: Reports, args: PolicyWorkerArgs) -> None:
    """Answers with random actions: a policy worker without a network."""
    rng = np.random.default_rng(0)
    spec = args.spec.stored_in or args.spec
    action = ActionSpec.of(spec.action_space)
    channel, rows, counters = args.channel, args.rows, args.counters
    masks = rows[OBS + ACTION_MASK] if ACTION_MASK in spec.obs_space.spaces else None
    reports.send(Ready())
    while True:
        counters.waiting()
        try:
            groups = channel.take()
        except StopRequested:
            return
        counters.working()
        numbers = channel.numbers(groups)
        slots, t, _ = channel.rows(groups, numbers)
        mask = None if masks is None else masks[slots, t]
        rows["discrete"][slots, t], rows["continuous"][slots, t] = random_actions(rng, action, len(slots), mask)
        channel.answer(groups, numbers)
        counters.add(steps=len(slots), calls=1)


def publishing_learner(reports: Reports, args: LearnerArgs) -> None:
    """Publishes weights once, so that policy workers can act, and then gives every slot back unread."""
    device = gpu.torch_device(args.weights.device)
    configure(args.weights.device, args.num_threads, deterministic=False)
    weights = SharedWeights.create(args.weights)
    action = ActionSpec.of(args.spec.action_space)
    updater = Updater(args.config, args.spec.obs_space, action, args.bfloat16, device)
    weights.publish(updater.flat_weights(), updater.version)
    assert args.policy_workers is not None
    policy_workers = PolicyWorkers(weights, args.policy_workers, reports)
    draining_learner(reports, args)
    policy_workers.wait_until_gone()


def draining_learner(reports: Reports, args: LearnerArgs) -> None:
    """Gives every slot back unread."""
    reports.send(LearnerReady(env_steps=0, seconds_before=0.0, lost_steps=0))
    counters = args.counters
    env_steps, reported_at = 0, time.perf_counter()
    while not args.stop.is_set():
        counters.waiting()
        try:
            slots = args.slots.take(at_most=1024)
        except StopRequested:
            break
        counters.working()
        num_taken = int(args.slots.arrays["env_steps"][slots].sum())
        args.slots.give_back(slots)
        env_steps += num_taken
        counters.add(steps=num_taken, calls=1)
        now = time.perf_counter()
        if now - reported_at > _REPORT_EVERY_S:
            reported_at = now
            reports.send(Trained(env_steps, {}))
    reports.send(LearnerFinished(env_steps))


class _TimedReports(Reports):
    """Ends the run some time after its first training report: rates are taken from there on."""

    def __init__(self, reports: Reports, stop: StopFlag, seconds: float) -> None:
        self._reports = reports
        self._stop = stop
        self._seconds = seconds
        self._end: float | None = None

    def send(self, report: Report) -> None:
        self._reports.send(report)
        if isinstance(report, Trained):
            now = time.monotonic()
            self._end = self._end or now + self._seconds
            if now >= self._end:
                self._stop.set()


def _timed(body: Body, seconds: float, reports: Reports, args: LearnerArgs) -> None:
    body(_TimedReports(reports, args.stop, seconds), args)


def _run_layer(**bodies: Body) -> Measure:
    """bodies: by role, those that stand in for the real ones."""

    def measure(plan: Plan, seconds: float) -> dict[str, Any]:
        run_dir = RunDir.at(plan.config.run.train_dir, "bench")
        run_dir.prepare(plan.config)
        config = plan.config.replace(train_for_seconds=_START_UP_AT_MOST_S + seconds, **_NO_OTHER_END)
        timed_learner = functools.partial(_timed, bodies.get("learner", learner), seconds)
        run = Run(dataclasses.replace(plan, config=config), run_dir, bodies={**bodies, "learner": timed_learner})
        with redirect_stdout(io.StringIO()):  # only the summary of the run is of interest
            summary = run.run()
        if summary["stopped_by"]:
            raise KeyboardInterrupt
        shares = {
            name: value for name, value in summary.items() if name.endswith("_share") and not name.startswith("train/")
        }
        return {"fps": summary["steady_env_frames_per_second"], **shares}

    return measure


LAYERS: dict[str, Measure] = {
    "simulation": simulate,
    "sampler": _run_layer(policy=random_policy_worker, learner=draining_learner),
    "inference": _run_layer(learner=publishing_learner),
    "training": _run_layer(),
}
