"""This project: the `sf` that this interpreter imports.

Rate: `steady_env_frames_per_second` of its summary.json. For the whole run, the frames of the last record in
metrics.jsonl over the time from the launch to that record, which is the time of the file.
Return: the run ends by --stop_at_return with the record that reached it, one of those made each 5 s.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import yaml
from peers.options import Options
from peers.trainer import Result, Trainer
from process_session import Ran, run_bounded

from sf import envs

EPISODES = 100
START_UP_S = 60.0  # what a run may take beyond --seconds before it must stop


def refusal(env: str) -> str | None:
    """As sf-train would say it."""
    try:
        envs.describe(env, envs.EnvOptions())
    except ValueError as error:
        return str(error)
    return None


def run(options: Options, python: Path, train_dir: Path, experiment: str) -> Result:
    command = [str(python), "-m", "sf", f"--env={options.env}", f"--device={options.device}"]
    command += [f"--train_dir={train_dir}", f"--experiment={experiment}", *options.shared_flags]
    command += [f"--train_for_seconds={options.seconds}", f"--train_for_env_steps={10**10}"]  # presets end sooner
    if options.to_return is not None:
        command += [f"--stop_at_return={options.to_return}", f"--stats_avg={EPISODES}"]
    command += shlex.split(options.own_flags)
    log_file = train_dir / f"{experiment}.log"
    ran = run_bounded(command, log_file, options.seconds + START_UP_S)
    folder = train_dir / experiment
    if ran.status or not (folder / "summary.json").exists():
        raise SystemExit(f"{shlex.join(command)} failed. Its log ends:\n{log_file.read_text()[-2000:]}")
    return result_in(folder, ran, has_goal=options.to_return is not None)


def result_in(folder: Path, ran: Ran, has_goal: bool) -> Result:
    summary = json.loads((folder / "summary.json").read_text())
    records = folder / "metrics.jsonl"
    last = json.loads(records.read_text().splitlines()[-1])
    seconds = records.stat().st_mtime - ran.started
    has_reached = summary["stopped_by"] == "stop_at_return"
    return Result(
        summary["steady_env_frames_per_second"] or None,  # 0: it had no time for two reports
        last["env_frames"],
        seconds,
        ran.left_behind,
        last["mean_return"] if has_goal and last.get("episodes_in_mean", 0) >= EPISODES else None,
        seconds if has_reached else None,
        last["env_frames"] if has_reached else None,
    )


def settings(folder: Path) -> dict[str, Any]:
    found = yaml.safe_load((folder / "config.yaml").read_text())
    return {name: value for name, value in found.items() if name != "train_dir"}  # a temporary folder, which is gone


OWN = Trainer(
    title="this project",
    refusal=refusal,
    install=lambda kind, peers_dir: Path(sys.executable),
    run=run,
    settings=settings,
)
