"""Measures what demonstrations cost: recording beside an evaluation, and cloning from disk beside the learner alone.

    python scripts/bench_demonstrations.py --json benchmarks/demonstrations_2cores.json

Recording is timed with the writing of the data set. Cloning reads the frames of an Atari game of which nothing is in
memory when a round begins; the learner alone trains on the first of these batches again and again.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from recording import json_file, machine
from recording.markdown_table import markdown_table

from sf.api import make_config
from sf.config import Config
from sf.envs import ActionSpec, describe
from sf.evaluation.play.contestants import contest_in
from sf.evaluation.recording import Recording
from sf.evaluation.task import EvaluationTask, RecordedTo, evaluate
from sf.learner.batches.buffer import BatchBuffer
from sf.learner.demonstrations.sampler import DemonstrationSampler
from sf.learner.update import Updater
from sf.run.planning import make_plan
from sf.shared.rows import slot_fields
from sf.storage.demonstrations.demonstrated_rows import DemonstratedRows, convert
from sf.storage.demonstrations.minari_set import MinariSet
from sf.system.arrays import SharedArrays
from sf.system.processes.torch_runtime import configure
from sf.tools.commands import cli

ENV = "atari_pong"
DATASET = "bench/pong-v0"


@dataclass(frozen=True)
class Options:
    """Chooses what to measure."""

    rounds: int = 3
    """Take each figure this often."""

    episodes: int = 8
    """Play this many episodes by random moves in each round of recording."""

    iterations: int = 3
    """Train for this many iterations in each round of cloning."""

    json: Path | None = None
    """Also write everything to this file."""


def main() -> None:
    options = cli.parse_flags(Options, "bench_demonstrations.py", str(__doc__))
    json_file.require_writable(options.json)
    figures: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MINARI_DATASETS_PATH"] = folder
        for number in range(options.rounds):
            pair = _recording(number, options.episodes)
            figures.setdefault("env steps/s of sf-eval, and of sf-record", []).append(pair)
        for pair in _cloning(Path(folder), options):
            figures.setdefault("learner samples/s alone, and cloning from disk", []).append(pair)
    json_file.write(options.json, {"machine": machine.describe("cpu"), "figures": figures})
    rows = []
    for name, each in figures.items():
        medians = [f"{median(side):,.0f}" for side in zip(*each, strict=True)]
        rows.append([name, *medians, ", ".join(f"{second / first:.2f}" for first, second in each)])
    print(markdown_table(["pair", "first", "second", "second / first"], rows))


def _recording(number: int, num_episodes: int) -> tuple[float, float]:
    contest = contest_in(ENV, ("random",))
    task = EvaluationTask(ENV, contest.options, contest.players, num_episodes, seed=number)
    recording = Recording(f"{DATASET[:-1]}{number}", ENV, describe(ENV, task.options), {"player": "random"})

    def recorded() -> int:
        to = RecordedTo(recording.directory, 1, "0")
        evaluate(dataclasses.replace(task, recorded=to))
        return recording.finish("random", "bench").num_steps

    return _per_s(lambda: sum(each.num_steps for each in evaluate(task).episodes)), _per_s(recorded)


def _cloning(folder: Path, options: Options) -> list[tuple[float, float]]:
    config: Config = make_config(env=ENV, demonstrations=(DATASET,), bc_steps=1, train_dir=str(folder))
    plan = make_plan(config)
    config, spec = plan.config, plan.spec
    convert([MinariSet(DATASET)], ENV, spec, folder / "rows", lambda done, total: None)
    configure("cpu", plan.learner_threads, deterministic=False, has_fixed_shapes=True)
    updater = Updater(config, spec.obs_space, ActionSpec.of(spec.action_space), plan.bfloat16, torch.device("cpu"))
    sampler = DemonstrationSampler(DemonstratedRows(folder / "rows"), (0,), lambda: updater.version)
    rows = SharedArrays(slot_fields(spec, 1, config.rollout))
    buffer = BatchBuffer(rows, config.trajectories_per_iteration, plan.state_size, "cpu")
    alone = {"policy_loss_coeff": 0.0, "exploration_loss_coeff": 0.0, "demo_coeff": 1.0}

    def train(reads: bool) -> int:
        for _ in range(options.iterations):
            if reads:
                sampler.fill_for_training(buffer.host)
            buffer.host.policy_version.fill_(updater.version)
            updater.train_iteration(buffer.host, 0.0, annealed=alone)
        return options.iterations * buffer.host.num_samples

    train(reads=True)
    pairs = []
    for _ in range(options.rounds):
        without = _per_s(lambda: train(reads=False))
        for path in (folder / "rows").iterdir():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        pairs.append((without, _per_s(lambda: train(reads=True))))
        print(f"cloning: {pairs[-1]}", file=sys.stderr, flush=True)
    return pairs


def _per_s(work: Callable[[], int]) -> float:
    """work: returns how much it has done."""
    began = time.perf_counter()
    return work() / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
