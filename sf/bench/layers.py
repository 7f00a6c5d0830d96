"""The layers of the system, each measured alone, with the same environments on the same cores.

simulation   a bare loop of random actions in one process a worker: what the machine can do at most
sampler      rollout workers, queues and shared memory, with random actions and no network
inference    the same with the real policy workers; trajectories are given back unread
training     everything
"""

from __future__ import annotations

import dataclasses
import functools
import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from sf.bench.bodies import draining_learner, publishing_learner, random_policy_worker
from sf.bench.simulation import simulate
from sf.learner.args import LearnerArgs
from sf.learner.worker import learner
from sf.processes.reports import Report, Reports, Trained
from sf.processes.stopping import StopFlag
from sf.run.children.roles.role import Body
from sf.run.lifetime import Run
from sf.run.plan import Plan
from sf.storage.run_dir import RunDir

Measure = Callable[[Plan, float], dict[str, Any]]
"""(plan, seconds) -> `fps`, frames per second over that time, and of a run the shares of time of its parts."""

_START_UP_AT_MOST_S = 600.0
_NO_OTHER_END = {"train_for_env_steps": 10**10, "train_for_env_frames": None, "stop_at_return": None}


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
