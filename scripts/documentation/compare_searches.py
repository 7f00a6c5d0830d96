"""`sf-tune` with its defaults (TPE, median pruner) against random search, at equal env steps.

    python scripts/documentation/compare_searches.py --dir train_dir/searches --json benchmarks/searches.json

For each task, both search the same ranges. The first runs its trials and is killed (SIGKILL) half way, then resumed
by the same command. Random search runs as many trials, none of them pruned, as fit into the env steps that the first
search took. The best of each is trained again with seeds that no search has seen, and evaluated for 100 episodes. The
same command goes on where it was stopped: finished searches and runs are not repeated.
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import yaml

from sf.storage import output_file
from sf.storage.run_records import read_records
from sf.tools.commands import cli

SPACE = {
    "learning_rate": {"low": 0.00003, "high": 0.03, "log": True},
    "num_epochs": {"low": 1, "high": 10},
    "rollout": [16, 32, 64, 128],
    "gamma": [0.95, 0.98, 0.99, 0.995, 0.999],
    "gae_lambda": {"low": 0.8, "high": 1.0},
    "exploration_loss_coeff": {"low": 0.0001, "high": 0.1, "log": True},
}
"""What is searched. Sizes of batches are left as they are: every rollout above divides them."""

TASKS = {"CartPole-v1": 30_000, "LunarLander-v3": 150_000}
"""Env steps of a run."""

BASE = {"num_workers": 1, "num_envs_per_worker": 16}
SEEDS_AFTERWARDS = (101, 102, 103)
LOOK_EVERY_S = 2.0
COMMANDS = Path(sys.executable).parent


@dataclass(frozen=True)
class Flags:
    """What is compared."""

    dir: Path = Path("train_dir/searches")
    """The searches and their runs go here."""

    trials: int = 30
    """Trials of each search."""

    parallel: int = 1
    """Trials at once. One leaves a core idle where the learner is what a run waits for."""

    searches: int = 1
    """Searches of each kind a task, each with a seed of its own."""

    tasks: tuple[Literal["CartPole-v1", "LunarLander-v3"], ...] = ("CartPole-v1", "LunarLander-v3")
    """Those to compare on."""

    env_steps: int | None = None
    """Of a run. Default: 30,000 of CartPole, 150,000 of LunarLander."""

    json: Path | None = None
    """Write the figures here."""


def main() -> None:
    flags = cli.parse_flags(Flags, "compare_searches.py", "Compare sf-tune with random search at equal env steps.")
    if flags.json is not None:
        with cli.exit_status():
            output_file.require_writable("json", flags.json)
    out = {}
    for task in flags.tasks:
        for seed in range(flags.searches):
            out[f"{task}, search seed {seed}"] = compare(task, seed, flags)
            print(json.dumps(out, indent=1))
            if flags.json is not None:
                output_file.write("json", flags.json, f"{json.dumps(out, indent=1)}\n".encode())


def compare(task: str, seed: int, flags: Flags) -> dict[str, Any]:
    name = task.lower().partition("-")[0]
    tpe, random = (flags.dir / f"{name}_{kind}_{seed}.yaml" for kind in ("tpe", "random"))
    length = flags.env_steps or TASKS[task]
    words = ["--seed", str(seed), "--parallel", str(flags.parallel)]
    base = {"flags": {**BASE, "env": task, "train_for_env_steps": length}, "search": SPACE}
    tuned = search(tpe, {**base, "trials": flags.trials}, words, kill_at=flags.trials // 2)
    env_steps = sum(trial["env_steps"] for trial in tuned)
    without_pruning = {"trials": max(1, env_steps // length), "sampler": "random", "pruner": "none"}
    drawn = search(random, {**base, **without_pruning}, words)
    return {
        "env_steps": env_steps,
        "parallel": flags.parallel,
        "tpe": {**summary(tuned), **retrained(tpe.with_suffix(""), task, length, tuned)},
        "random": {**summary(drawn), **retrained(random.with_suffix(""), task, length, drawn)},
    }


def search(path: Path, settings: dict[str, Any], words: list[str], kill_at: int | None = None) -> list[dict[str, Any]]:
    """Every trial with state, value, parameters and env steps. kill_at: trials that are over when it is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    command = [COMMANDS / "sf-tune", str(path), "--train_dir", str(path.parent), *words]
    directory = path.with_suffix("")
    killed = directory / "was_killed"
    if kill_at is not None and not killed.exists():
        with subprocess.Popen(command, start_new_session=True) as process:
            while process.poll() is None and num_over(directory) < kill_at:
                time.sleep(LOOK_EVERY_S)
            if process.poll() is not None:
                sys.exit(f"{shlex.join(map(str, command))} was to be killed and ended with {process.returncode}")
            os.killpg(process.pid, signal.SIGKILL)
        killed.write_text(f"{num_over(directory)} trials were over\n")
    subprocess.run(command, check=True)
    return [{**row, "env_steps": env_steps_of(directory / f"trial_{int(row['trial']):05d}")} for row in rows(directory)]


def rows(directory: Path) -> list[dict[str, Any]]:
    try:
        with (directory / "trials.csv").open(newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def num_over(directory: Path) -> int:
    return sum(row["state"] in ("done", "pruned", "failed") for row in rows(directory))


def env_steps_of(run: Path) -> int:
    """0 where the run failed before its first record."""
    try:
        records, _ = read_records(run / "metrics.jsonl")
    except FileNotFoundError:
        return 0
    return int(records[-1]["env_steps"]) if records else 0


def summary(trials: list[dict[str, Any]]) -> dict[str, Any]:
    values = [float(trial["mean_return"]) for trial in trials if trial["state"] == "done"]
    return {
        "trials": len(trials),
        "pruned": sum(trial["state"] == "pruned" for trial in trials),
        "failed": sum(trial["state"] == "failed" for trial in trials),
        "best": max(values),
        "median_of_finished": median(values),
    }


def retrained(directory: Path, task: str, length: int, trials: list[dict[str, Any]]) -> dict[str, Any]:
    """The best of the trials, trained with seeds of its own and evaluated: mean return of 100 episodes each."""
    best = max((trial for trial in trials if trial["state"] == "done"), key=lambda trial: float(trial["mean_return"]))
    chosen = {name: best[name] for name in SPACE}
    scores = []
    for seed in SEEDS_AFTERWARDS:
        run = f"{directory.name}_trial_{best['trial']}_seed_{seed}"
        evaluation = directory.parent / f"{run}.json"
        if not evaluation.exists():
            where = {"train_dir": directory.parent, "experiment": run}
            named = {**BASE, **chosen, **where, "env": task, "seed": seed, "train_for_env_steps": length}
            train = [COMMANDS / "sf-train", *cli.arguments(named)]
            subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
            play = [COMMANDS / "sf-eval", str(directory.parent / run), "--episodes=100", f"--json={evaluation}"]
            subprocess.run(play, check=True, stdout=subprocess.DEVNULL)
        statistics = json.loads(evaluation.read_text())["policies"][0]["statistics"]
        scores.append(statistics["return"]["mean"])
    return {"chosen": chosen, "mean_return_with_new_seeds": scores}


if __name__ == "__main__":
    main()
