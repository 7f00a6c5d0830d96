"""Measures how long the learner takes with each recurrent core: the core alone, and a whole iteration.

    python scripts/bench_cores.py --cores gru mingru --rounds 7 --json benchmarks/cores_2cores.json

Cores take turns within a round, in one process, so that what else the machine does slows all of them. The figures are
microseconds for a sample (a step of a trajectory): the core's forward and backward pass, and `Updater.train_iteration`
with a vector of 64 numbers, an encoder of one layer as wide as the core, and one optimiser step.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from recording import json_file, machine
from recording.markdown_table import markdown_table

from sf.config import Config, ModelConfig
from sf.envs import ActionSpec
from sf.learner.batches.batch import Batch
from sf.learner.update import Updater
from sf.model.cores.choice import make_core
from sf.system.processes import torch_runtime
from sf.tools.commands import cli

NUM_INPUTS = 64
TIMES = 10  # in a round, of which the fastest counts: others may have had the core
RESETS = 0.01  # the share of steps with which an episode begins


@dataclass(frozen=True)
class Options:
    """Says what to measure."""

    cores: tuple[str, ...] = ("gru", "mingru")
    """Measure these cores, and compare each with the first."""

    size: int = 256
    """Take this --rnn_size, and an encoder of this width."""

    steps: int = 64
    """Take trajectories of this many steps."""

    trajectories: int = 32
    """Take minibatches of this many trajectories."""

    threads: int = 1
    """Compute with this many threads."""

    rounds: int = 5
    """Take each figure this often."""

    bfloat16: cli.Switch = False
    """Compute products in bfloat16."""

    compile: bool = True
    """Use compiled loops."""

    json: Path | None = None
    """Also write everything to this file."""


def main() -> None:
    options = cli.parse_flags(Options, "bench_cores.py", str(__doc__))
    json_file.require_writable(options.json)
    torch_runtime.configure("cpu", options.threads, deterministic=False)
    found = measure(options)
    rows = [
        [part, core, f"{figures['median']:.1f}", ", ".join(map(str, figures["times_as_fast_as_the_first"]))]
        for part in ("core", "iteration")
        for core, figures in found[part].items()
    ]
    print(markdown_table(["part", "core", "us for a sample, median", "times as fast as the first"], rows))
    json_file.write(options.json, found)


def measure(options: Options) -> dict[str, Any]:
    """Returns the settings, and for each part and core the rounds and their median, and its speed beside the first."""
    flags = {core: Config().replace(**flags_of(core, options)) for core in options.cores}
    works = {
        "core": {core: core_alone(config.model, options) for core, config in flags.items()},
        "iteration": {core: iteration(config, options) for core, config in flags.items()},
    }
    settings = {name: value for name, value in dataclasses.asdict(options).items() if name != "json"}
    found: dict[str, Any] = {"machine": machine.describe("cpu"), "settings": settings}
    for part, of_cores in works.items():
        rounds: dict[str, list[float]] = {core: [] for core in of_cores}
        for turn in range(options.rounds + 1):
            for core, work in of_cores.items():
                seconds = min(timed(work) for _ in range(TIMES))
                if turn:  # the first one starts everything up
                    rounds[core].append(1e6 * seconds / (options.steps * options.trajectories))
        found[part] = {
            core: {
                "us_per_sample": [round(us, 2) for us in times],
                "median": round(statistics.median(times), 2),
                "times_as_fast_as_the_first": [
                    round(one / us, 2) for one, us in zip(rounds[options.cores[0]], times, strict=True)
                ],
            }
            for core, times in rounds.items()
        }
    return found


def flags_of(core: str, options: Options) -> dict[str, Any]:
    return {
        "core": core,
        "rnn_size": options.size,
        "encoder_mlp_layers": (options.size,),
        "rollout": options.steps,
        "batch_size": options.steps * options.trajectories,
        "compile": options.compile,
    }


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def core_alone(model: ModelConfig, options: Options) -> Callable[[], None]:
    """Returns the forward and backward pass of the core over [T, B, size]."""
    torch.manual_seed(0)
    core = make_core(model, options.size)
    core.with_loops = model.compile is not False
    x = torch.randn(options.steps, options.trajectories, options.size, requires_grad=True)
    state, weight = torch.zeros(options.trajectories, core.state_size), torch.randn_like(x)
    first = torch.rand(options.steps, options.trajectories) < RESETS

    def work() -> None:
        core.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bfloat16):
            out = core.unroll(x, state, first)
        out.backward(weight)

    return work


def iteration(config: Config, options: Options) -> Callable[[], None]:
    """Returns an iteration of the learner: one optimiser step on one batch."""
    torch.manual_seed(0)
    space = gym.spaces.Dict(obs=gym.spaces.Box(-np.inf, np.inf, (NUM_INPUTS,), np.float32))
    updater = Updater(config, space, ActionSpec((4,), 0), options.bfloat16, torch.device("cpu"))
    rows = (options.steps, options.trajectories)
    batch = Batch(
        obs={"obs": torch.randn(options.steps + 1, options.trajectories, NUM_INPUTS)},
        first=torch.rand(options.steps + 1, options.trajectories) < RESETS,
        state=torch.zeros(options.trajectories, updater.model.state_size),
        discrete=torch.randint(0, 4, (*rows, 1), dtype=torch.int32),
        continuous=torch.zeros(*rows, 0),
        log_prob=torch.full(rows, -math.log(4.0)),
        value=torch.zeros(rows),
        policy_version=torch.ones(rows, dtype=torch.int32),
        reward=torch.randn(rows),
        terminated=torch.zeros(rows, dtype=torch.bool),
        valid=torch.ones(rows, dtype=torch.bool),
    )

    def work() -> None:
        batch.policy_version.fill_(updater.version)
        updater.train_iteration(batch, 0.0)

    return work


if __name__ == "__main__":
    main()
