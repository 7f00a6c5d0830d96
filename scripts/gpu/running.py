"""Does it run, and does it learn? The check, the tests for a GPU, a run of each kind, and a score by the clock."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from statistics import median
from typing import Any

from gpu.step import Context, Findings, Lines
from gpu.training import Trained, train

REPOSITORY = Path(__file__).resolve().parent.parent.parent
_MARK = "mark.gpu"  # in the source of a test

_KINDS: dict[str, tuple[float, dict[str, Any]]] = {  # seconds, flags; those that should rise are named below
    "CartPole": (45, {"env": "CartPole-v1"}),
    "doom_basic": (90, {"env": "doom_basic"}),
    "lstm": (90, {"env": "toy_memory", "core": "lstm", "num_envs_per_worker": 32}),  # remembers from 70,000 steps on
    "two_policies": (45, {"env": "CartPole-v1", "num_policies": 2}),
    "self_play": (45, {"env": "toy_match_pennies"}),
    "synchronous": (45, {"env": "CartPole-v1", "async_rl": False}),
}
_CORES_OF_A_RUN = 4
_SHOULD_RISE = ("CartPole", "doom_basic", "lstm", "two_policies", "synchronous")
_ENOUGH_EPISODES = 50  # of the 100 of a mean: short ones finish first
_STANDARD_ERRORS = 3.0  # of the difference: about one flat curve in a thousand exceeds them
_PIECE_S = 450.0
_EPISODES = 100  # of a mean, as by default


def check(context: Context) -> Findings:
    """sf-train --check."""
    path = context.folder / "check.json"
    words = ["--check", "--json", str(path), "--train_dir", str(context.folder), "--device", context.device]
    done = subprocess.run([sys.executable, "-m", "sf", *words], capture_output=True, text=True, check=False)
    data = json.loads(path.read_text()) if path.exists() else None
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("ok ")]  # what is worth reading
    return Findings(done.returncode == 0, [*lines, *done.stderr.splitlines()[-3:]], data)


def tests(context: Context) -> Findings:
    """The tests marked `gpu`."""
    files = [str(path) for path in sorted((REPOSITORY / "tests").rglob("test_*.py")) if _MARK in path.read_text()]
    if not files:
        return Findings(False, ["no test is marked gpu"])
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return Findings(done.returncode == 0, (done.stdout + done.stderr).strip().splitlines()[-5:], done.stdout)


def runs(context: Context) -> Findings:
    """A run of each kind: it ends well, and returns rise."""
    lines, data, is_ok = Lines(), {}, True
    num_at_once = max(1, context.num_cores // _CORES_OF_A_RUN)
    common = {"summaries_every_sec": 2, "restart_behavior": "overwrite", "num_workers": _CORES_OF_A_RUN - 1}

    def trained(name: str) -> Trained:
        seconds, flags = _KINDS[name]
        return train(context, name, context.seconds(seconds), {**common, **flags})

    with ThreadPool(num_at_once) as pool:
        all_trained = pool.map(trained, _KINDS)
    for name, run in zip(_KINDS, all_trained, strict=True):
        data[name] = run.as_data()
        should_rise = name in _SHOULD_RISE and not context.is_rehearsal
        is_flat = should_rise and not has_risen(run.records)
        is_ok &= run.is_ok and not is_flat
        wrong = " RETURNS DO NOT RISE:" if run.is_ok and is_flat else ""
        lines.add(f"{name}:{wrong} {run.as_text()}")
    return Findings(is_ok, lines.lines, data)


def has_risen(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the median of the mean returns in the last quarter is above that in the first one by more than noise.

    records: of metrics.jsonl.
    """
    records = [record for record in records if record["episodes_in_mean"] >= _ENOUGH_EPISODES]
    if len(records) < 2:
        return False
    quarter = max(1, len(records) // 4)
    first, last = records[:quarter], records[-quarter:]
    rise = median(record["mean_return"] for record in last) - median(record["mean_return"] for record in first)
    return rise > _STANDARD_ERRORS * math.hypot(_standard_error(first), _standard_error(last))


def _standard_error(records: Sequence[Mapping[str, Any]]) -> float:
    """Of one mean return: those of a quarter share most of their episodes."""
    return median(record["std_return"] / math.sqrt(record["episodes_in_mean"]) for record in records)


def reach(flags: Mapping[str, Any], score: float, give_up_s: float, context: Context) -> Findings:
    """Train to a mean return over the latest episodes; give up after this many seconds of the run."""
    before = _seconds_before(context)
    end = min(before + context.seconds(_PIECE_S), give_up_s)
    run = train(context, "run", end, {"stop_at_return": score, "summaries_every_sec": 2, **flags})
    reached = next((record for record in run.records if _score(record) >= score), None)
    seconds = run.summary.get("seconds", 0.0)
    is_finished = not run.is_ok or reached is not None or seconds >= give_up_s or context.is_rehearsal
    if reached is not None:
        said = f"{score:g} after {reached['seconds']:.0f} s and {reached['env_frames']:,} frames"
    else:
        said = f"not {score:g} yet" if not is_finished else f"{score:g} not reached"
    lines = [f"{flags['env']}: {said}", run.as_text()]
    data = {"reached": reached, "curve": _curve(run), **run.as_data()}
    return Findings(run.is_ok and (reached is not None or context.is_rehearsal), lines, data, is_finished)


pong = partial(reach, {"env": "atari_pong"}, 18.0, 900.0)
doom = partial(reach, {"env": "doom_basic", "train_for_env_steps": 10**9}, 75.0, 300.0)
hopper = partial(reach, {"env": "Hopper-v5"}, 2000.0, 450.0)


def _seconds_before(context: Context) -> float:
    """Of the pieces before this one."""
    path = context.folder / "run" / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return json.loads(lines[-1])["seconds"] if lines else 0.0


def _score(record: Mapping[str, Any]) -> float:
    """Of enough episodes: the first that end are the short ones, which in some games are the best."""
    is_whole = record.get("episodes_in_mean", 0) >= _EPISODES
    return record["mean_return"] if is_whole else float("-inf")


def _curve(run: Trained) -> list[tuple[float, int, float]]:
    """Seconds, frames, mean return: at most a hundred points."""
    points = [(r["seconds"], r["env_frames"], _score(r)) for r in run.records if _score(r) > float("-inf")]
    return points[:: max(1, len(points) // 100)]
