"""The words and tables on the page of a run: its status, key figures, settings and machine."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from sf.config import Config
from sf.metrics.readable import clock, count, four_digits
from sf.storage.run_dir import FAILURE
from sf.storage.run_records import is_number, not_undone, numbers, settled
from sf.storage.text_files import plain
from sf.tools.report.groups import shown, told_apart
from sf.tools.report.runs import Run

_SILENT_RECORDS = 5  # a run that has written nothing for the time of so many records is no longer running
_SILENT_AT_LEAST_S = 60.0
_RECENT_S = 60.0
_TIMED = {"env_frames", "seconds"}


@dataclass(frozen=True)
class Status:
    """Says whether a run goes on, and if not, why it ended."""

    kind: Literal["running", "finished", "stopped", "ended"]
    sentence: str


@dataclass(frozen=True)
class Setting:
    """One setting and its default."""

    name: str
    value: str
    default: str

    @property
    def is_changed(self) -> bool:
        return self.value != self.default


def read_summary(run: Run) -> dict[str, Any] | None:
    """The content of summary.json; None where it is missing or of an earlier part of the run than these records."""
    found = run.directory.saved_summary() or {}
    if not is_number(found.get("seconds")) or found["seconds"] < run.records[-1].get("seconds", 0.0):
        return None
    return {**numbers(found), "stopped_by": found.get("stopped_by")}


def status(run: Run, summary: Mapping[str, Any] | None, now: float) -> Status:
    """now: seconds since the epoch, to tell a run that goes on from one that was killed."""
    if summary is None:
        silent_s = now - run.directory.metrics.stat().st_mtime
        started_s = now - run.directory.system.stat().st_mtime if run.directory.system.is_file() else silent_s
        if min(silent_s, started_s) < max(_SILENT_AT_LEAST_S, _SILENT_RECORDS * run.flags["summaries_every_sec"]):
            what = "last record" if silent_s <= started_s else "started"
            return Status("running", f"running, {what} {max(0.0, min(silent_s, started_s)):.0f} s ago")
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(now - silent_s))
        return Status("ended", f"ended without a summary (killed?), last record {since}; run.log has its last words")
    stopped_by = summary.get("stopped_by")
    if stopped_by == "stop_at_return":
        return Status("finished", "finished, at the return of stop_at_return")
    if stopped_by and stopped_by != FAILURE:
        return Status("stopped", f"stopped by {stopped_by}")
    if stopped_by != FAILURE and _has_reached_its_end(run.flags, summary):
        return Status("finished", "finished")
    return Status("ended", "ended early: a process failed for good; run.log has its last words")


def key_figures(run: Run, summary: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """Name, value and further remark of each. Where the run went back to a checkpoint, only what it kept counts, but
    for the faults."""
    last = summary or run.records[-1]
    all_records = [*run.records, last]
    remaining = not_undone(all_records)
    returns = [record for record in settled(remaining, run.flags) if is_number(record.get("mean_return"))]
    figures = [("frames", count(last.get("env_frames")), f"{count(last.get('env_steps'))} env steps")]
    if summary and summary.get("steady_env_frames_per_second"):
        figures.append(("frames/s", count(summary["steady_env_frames_per_second"]), "without start-up"))
    elif summary:
        figures.append(("frames/s", count(summary.get("env_frames_per_second")), "since the last start, with start-up"))
    else:
        figures.append(("frames/s", *_recent_rate(run.records)))
    figures.append(("wall time", clock(last.get("seconds") or 0.0), ""))
    figures.append(("episodes", count(over_all_starts(remaining, "episodes")), _faults(all_records)))
    if returns:
        best, final = max(returns, key=lambda record: record["mean_return"]), returns[-1]
        spread = (
            f"standard deviation of episodes {four_digits(final['std_return'])}"
            if is_number(final.get("std_return"))
            else ""
        )
        figures.append(("last return", four_digits(final["mean_return"]), spread))
        figures.append(("best return", four_digits(best["mean_return"]), f"at {count(best.get('env_frames'))} frames"))
    return figures


def over_all_starts(records: Sequence[Mapping[str, Any]], name: str) -> float:
    """The sum over all starts of a count that begins at 0 with each start."""
    found = [(record.get("start"), record[name]) for record in records if is_number(record.get(name))]
    # Records of earlier versions do not say which start they are of: there, a count that falls tells.
    ends = [before[1] for before, after in pairwise(found) if after[0] != before[0] or after[1] < before[1]]
    return sum([*ends, *(count for _, count in found[-1:])])


def settings(run: Run) -> dict[str, list[Setting]]:
    """The settings by part of the configuration. Those that this version does not know are under "unknown"."""
    defaults = Config()
    parts: dict[str, list[Setting]] = {}
    known = {"experiment", "train_dir", "restart_behavior"}  # where it lies: the head of the page says so
    for part in dataclasses.fields(defaults):
        values = dataclasses.asdict(getattr(defaults, part.name))
        names = [name for name in values if name not in known]
        parts[part.name] = [Setting(name, *told_apart([run.flags.get(name), values[name]])) for name in names]
        known |= values.keys()
    unknown = [Setting(name, shown(value), "") for name, value in run.flags.items() if name not in known]
    return {**parts, **({"unknown": unknown} if unknown else {})}


def system_rows(start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The rows of one entry of system.json, without what the entry lacks."""
    versions, gpus = start.get("versions"), start.get("gpus")
    rows = {
        "CPU": start.get("cpu"),
        "cores": start.get("cores") and f"{start['cores']}, of which the run may use {start.get('usable_cores')}",
        "memory": start.get("memory_gib") and f"{start['memory_gib']} GiB",
        "GPU": ", ".join(map(str, gpus)) if isinstance(gpus, list) and gpus else "none",
        "CUDA": start.get("cuda"),
        "system": start.get("os"),
        "host": start.get("host"),
        "Python": start.get("python"),
        "packages": ", ".join(f"{k} {v}" for k, v in versions.items()) if isinstance(versions, dict) else None,
        "commit": start.get("commit"),
        "command": start.get("command"),
        "started": start.get("started_at"),
    }
    return [(name, plain(str(value))) for name, value in rows.items() if value]


def _recent_rate(records: Sequence[Mapping[str, float]]) -> tuple[str, str]:
    """Frames a second of a run that goes on, and over what time: a single record may be between two iterations."""
    last = records[-1]
    of_start = [each for each in records if each.get("start") == last.get("start") and each.keys() >= _TIMED]
    recent = [each for each in of_start if of_start[-1]["seconds"] - each["seconds"] <= _RECENT_S]
    seconds = recent[-1]["seconds"] - recent[0]["seconds"] if recent else 0.0
    if seconds <= 0:
        return count(last.get("env_frames_per_second")), "in the last record"
    return count((recent[-1]["env_frames"] - recent[0]["env_frames"]) / seconds), "over the last minute"


def _has_reached_its_end(flags: Mapping[str, Any], summary: Mapping[str, Any]) -> bool:
    ends = {"train_for_env_steps": "env_steps", "train_for_env_frames": "env_frames", "train_for_seconds": "seconds"}
    return any(flags[flag] is not None and summary.get(done, 0) >= flags[flag] for flag, done in ends.items())


def _faults(records: Sequence[Mapping[str, Any]]) -> str:
    """The faults that were repaired; empty where there were none."""
    said = {"restarts": "processes replaced", "env_faults": "environments rebuilt"}
    counts = {name: over_all_starts(records, name) for name in said}
    return ", ".join(f"{count(num)} {said[name]}" for name, num in counts.items() if num)
