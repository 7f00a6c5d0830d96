"""Measures what OpenAI Five and ELF found about data: batch size, staleness, reuse, horizon, and corrections.

    python scripts/bench_data.py --task doom_defend_the_center --json benchmarks/data_doom_defend_the_center_2cores.json
    python scripts/bench_data.py --task rts_mini --json benchmarks/data_rts_mini_2cores.json

Each run changes one thing and ends when it has reached a score, or after as many frames as the task has. The file has
a line for each run that ended; the same command goes on where it was stopped. At the end there is a table, and with
--picture a picture: env steps and seconds to the score.

Staleness is measured in synchronous mode, where nothing else makes data old, with a learner whose weights arrive some
versions late (scripts/data_questions/held_back.py).
"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from data_questions.picture import draw
from process_session import run_bounded
from recording import machine
from recording.markdown_table import markdown_table

from sf.storage import text_files
from sf.storage.run_records import read_records
from sf.tools.commands import cli

HELD_BACK = Path(__file__).parent / "data_questions" / "held_back.py"
START_UP_S = 120.0
EPISODES = 100  # that a score is the mean of


@dataclass(frozen=True)
class Variation:
    """More flags than those of the task. held_back: the learner's weights arrive so many versions late."""

    flags: str
    held_back: int | None = None


@dataclass(frozen=True)
class Task:
    """flags: of all runs. score: the mean return that ends a run. questions: variations by their names, by question."""

    flags: str
    score: float
    frames: int
    questions: Mapping[str, Mapping[str, Variation]]


SYNCHRONOUS = "--async_rl false"
TASKS = {
    "doom_defend_the_center": Task(
        "--env doom_defend_the_center --num_workers 2 --num_envs_per_worker 8 --rollout 32 --batch_size 256 "
        "--num_batches_per_epoch 4 --num_epochs 4 --gamma 0.99",
        score=5.0,
        frames=1_000_000,
        questions={
            "batch size (minibatches of 256)": {
                "1x": Variation(""),
                "4x": Variation("--batch_size 1024"),
            },
            "staleness, versions (synchronous)": {
                "0": Variation(SYNCHRONOUS, held_back=0),
                "8": Variation(SYNCHRONOUS, held_back=8),
                "32": Variation(SYNCHRONOUS, held_back=32),
            },
            "reuse (4 epochs)": {"1 epoch": Variation("--num_epochs 1")},
            "horizon 1 / (1 - gamma) (100 steps)": {
                "50 steps": Variation("--gamma 0.98"),
                "200 steps": Variation("--gamma 0.995"),
            },
            "corrections (V-trace and clipping)": {
                "V-trace alone": Variation("--with_vtrace true --with_ppo_clip false"),
                "clipping alone": Variation("--with_vtrace false --with_ppo_clip true"),
            },
        },
    ),
    "rts_mini": Task(
        "--env rts_mini --num_workers 2",
        score=0.6,  # 80 % of the games are won
        frames=750_000,
        questions={
            "against simple, every 50 ticks": {"ReLU, T = 32": Variation("")},
            "frame skip of the opponent": {
                "20 ticks": Variation("--env_kwargs '{\"opponent_frame_skip\": 20}'"),
                "5 ticks": Variation("--env_kwargs '{\"opponent_frame_skip\": 5}'"),
            },
            "activation": {
                "leaky ReLU": Variation("--nonlinearity leaky_relu"),
                "ELU": Variation("--nonlinearity elu"),
            },
            "T (trajectories)": {
                "4": Variation("--rollout 4"),
                "8": Variation("--rollout 8"),
                "16": Variation("--rollout 16"),
            },
        },
    ),
}


@dataclass(frozen=True)
class Options:
    """Says what to measure."""

    json: Path
    """The file of results, a line of JSON for each run."""

    task: Literal["doom_defend_the_center", "rts_mini"] = "doom_defend_the_center"
    """The task of all runs."""

    questions: tuple[str, ...] = ("",)
    """Names, or parts of names, of the questions."""

    seeds: tuple[int, ...] = (1,)
    """A run of each variation for each of them."""

    frames: int | None = None
    """End each run after this many frames, instead of those of the task."""

    score: float | None = None
    """End each run at this mean return, instead of that of the task."""

    report: cli.Switch = False
    """Make no runs, only the table."""

    picture: Path | None = None
    """Also draw the results into this file."""


def main() -> None:
    """Ends with 0, or with 2 after a user's mistake."""
    options = cli.parse_flags(Options, "bench_data.py", str(__doc__))
    task = TASKS[options.task]
    results = _read(options.json)
    frames, score = options.frames or task.frames, task.score if options.score is None else options.score
    chosen = [
        (question, name, variation)
        for question, variations in task.questions.items()
        if any(part in question for part in options.questions)
        for name, variation in variations.items()
    ]
    if not options.report:
        for seed in options.seeds:
            for question, name, variation in chosen:
                key = {"task": options.task, "question": question, "variation": name, "seed": seed}
                key |= {"score": score, "frames": frames, "flags": f"{task.flags} {variation.flags}".strip()}
                if any(key.items() <= result.items() for result in results):
                    continue
                result = {**key, **_run(task, variation, seed, frames, score), **machine.describe("cpu")}
                text_files.append(options.json, f"{text_files.dumps(result)}\n".encode())
                results.append(result)
                print(f"{question}, {name}, seed {seed}: {_shown(result)}", file=sys.stderr, flush=True)
    rows = [
        [
            question,
            name,
            *_means([each for each in results if (each["question"], each["variation"]) == (question, name)]),
        ]
        for question, name, _ in chosen
    ]
    print(
        markdown_table(
            ["question", "variation", f"env steps to {score:g}", "seconds", "last score", "lag, versions", "reuse"],
            rows,
        )
    )
    if options.picture is not None:
        draw([result for result in results if result["task"] == options.task], options.picture)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text_files.whole_lines(path)] if path.exists() else []


def _run(task: Task, variation: Variation, seed: int, frames: int, score: float) -> dict[str, Any]:
    """Trains, and returns when the score was reached (None: never), and how the run ended."""
    with tempfile.TemporaryDirectory() as folder:
        held_back = variation.held_back
        program = ["-m", "sf"] if held_back is None else [str(HELD_BACK), str(held_back)]
        command = [sys.executable, *program, *shlex.split(f"{task.flags} {variation.flags}"), f"--seed={seed}"]
        command += [f"--train_dir={folder}", "--experiment=run", f"--train_for_env_frames={frames}"]
        command += [f"--stats_avg={EPISODES}", "--summaries_every_sec=2", f"--stop_at_return={score}"]
        ran = run_bounded(command, Path(folder, "log"), 1e6)
        if ran.status:
            sys.exit(Path(folder, "log").read_text())
        records, _ = read_records(Path(folder, "run", "metrics.jsonl"))
        known = [record for record in records if record.get("episodes_in_mean", 0) >= EPISODES]
        reached = next((record for record in known if record["mean_return"] >= score), None)
        last = records[-1]
        lags = [record["train/lag_mean"] for record in records if "train/lag_mean" in record]
        return {
            "env_steps": None if reached is None else reached["env_steps"],
            "seconds": None if reached is None else reached["seconds"],
            "last": last.get("mean_return"),
            "env_steps_at_the_end": last["env_steps"],
            "seconds_at_the_end": last["seconds"],
            "lag": fmean(lags) if lags else None,
            "reuse": last.get("train/sample_reuse"),
        }


def _shown(result: Mapping[str, Any]) -> str:
    if result["env_steps"] is None:
        steps, seconds = result["env_steps_at_the_end"], result["seconds_at_the_end"]
        score = "no score" if result["last"] is None else f"{result['last']:.3g}"
        return f"{score} after {steps:,} env steps, {seconds:.0f} s"
    return f"after {result['env_steps']:,} env steps, {result['seconds']:.0f} s"


def _means(results: list[dict[str, Any]]) -> list[str]:
    """Returns the cells of a row, the means over seeds. Where a seed has not reached the score, its end is a bound."""
    if not results:
        return ["-"] * 5
    is_bound = any(each["env_steps"] is None for each in results)
    steps = fmean(each["env_steps"] or each["env_steps_at_the_end"] for each in results)
    seconds = fmean(each["seconds"] or each["seconds_at_the_end"] for each in results)
    more = "more than " if is_bound else ""
    numbers = [
        fmean(known) if (known := [each[name] for each in results if each[name] is not None]) else None
        for name in ("last", "lag", "reuse")
    ]
    return [
        f"{more}{steps:,.0f}",
        f"{more}{seconds:.0f}",
        *("-" if each is None else f"{each:.3g}" for each in numbers),
    ]


if __name__ == "__main__":
    main()
