"""Does it learn? A score by the clock, in pieces of under ten minutes: an unfinished one goes on at the next call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpu.step import Context, Findings
from gpu.training import Trained, train

_PIECE_S = 450.0
_EPISODES = 100  # of a mean, as by default


@dataclass(frozen=True)
class Goal:
    """A mean return over the latest episodes; give up after this many seconds of the run."""

    flags: Mapping[str, Any]
    score: float
    give_up_s: float


def reach(goal: Goal, context: Context) -> Findings:
    before = _seconds_before(context)
    end = min(before + context.seconds(_PIECE_S), goal.give_up_s)
    run = train(context, "run", end, {"stop_at_return": goal.score, "summaries_every_sec": 2, **goal.flags})
    reached = next((record for record in run.records if _score(record) >= goal.score), None)
    seconds = run.summary.get("seconds", 0.0)
    is_finished = not run.is_ok or reached is not None or seconds >= goal.give_up_s or context.is_rehearsal
    if reached is not None:
        said = f"{goal.score:g} after {reached['seconds']:.0f} s and {reached['env_frames']:,} frames"
    else:
        said = f"not {goal.score:g} yet" if not is_finished else f"{goal.score:g} not reached"
    lines = [f"{goal.flags['env']}: {said}", run.as_text()]
    data = {"reached": reached, "curve": _curve(run), **run.as_data()}
    return Findings(run.is_ok and (reached is not None or context.is_rehearsal), lines, data, is_finished)


pong = partial(reach, Goal({"env": "atari_pong"}, score=18.0, give_up_s=900.0))
doom = partial(reach, Goal({"env": "doom_basic", "train_for_env_steps": 10**9}, score=75.0, give_up_s=300.0))
hopper = partial(reach, Goal({"env": "Hopper-v5"}, score=2000.0, give_up_s=450.0))


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
