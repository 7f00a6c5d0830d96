"""`sf-bench`: frames per second of each layer of the system, or with --autotune the fastest settings."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sf import cli

if TYPE_CHECKING:
    from sf.bench.autotune import Search, Settings
    from sf.config import Config
    from sf.plan import Plan

_DESCRIPTION = """\
Frames per second of each layer of the system, measured in turn on this machine:

  simulation   a bare loop of random actions in one process a worker: what the machine can do at most
  sampler      rollout workers, queues and shared memory, with random actions and no network
  inference    the same with the real policy workers; trajectories are given back unread
  training     everything

With --autotune: tries numbers of workers, environments, policy workers and batch sizes, and prints the fastest command.
Any flag of sf-train may follow; what is given so is not tuned.

  sf-bench --env doom_battle --num_workers 2 --num_envs_per_worker 16
  sf-bench --env doom_battle --autotune
"""
_LAYERS = ("simulation", "sampler", "inference", "training")
_WIDTH = 120


def main() -> None:
    """Measure and print; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="sf-bench",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # what is misspelt is for the parser of sf-train to name
    )
    parser.add_argument("--seconds", type=float, help="measured time of a layer in a round, or of a trial (20, or 5)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each layer is measured (3)")
    parser.add_argument("--layers", nargs="+", default=list(_LAYERS), choices=list(_LAYERS))
    parser.add_argument("--autotune", action="store_true", help="look for the fastest settings")
    parser.add_argument("--budget_s", type=float, default=120.0, help="how long to look for them, in seconds (120)")
    parser.add_argument("--json", type=Path, help="write the result here, too")
    own, flags = parser.parse_known_args()
    with cli.exit_status(), tempfile.TemporaryDirectory() as train_dir:
        config = cli.parse([*flags, "--train_dir", train_dir, "--experiment", "bench"], prog="sf-bench")
        config = config.replace(restart_behavior="overwrite", summaries_every_sec=1e6, save_every_sec=1e6)
        result = (
            _autotune(config, flags, own.seconds or 5.0, own.budget_s)
            if own.autotune
            else _measure_layers(config, own.layers, own.seconds or 20.0, own.rounds)
        )
    if own.json:
        own.json.write_text(json.dumps({"flags": flags, "cores": os.cpu_count(), **result}, indent=2) + "\n")


def _measure_layers(config: Config, layers: Sequence[str], seconds: float, rounds: int) -> dict[str, Any]:
    from sf.bench.layers import LAYERS  # noqa: PLC0415  torch is slow to import: not for --help
    from sf.plan import make_plan  # noqa: PLC0415

    plan = make_plan(config)
    results: dict[str, list[dict[str, Any]]] = {layer: [] for layer in layers}
    for round_idx in range(rounds):
        for layer in layers:
            result = LAYERS[layer](plan, seconds)
            results[layer].append(result)
            _say(f"round {round_idx + 1} {layer}: {result['fps']:,.0f} frames/s")
    _print_layers(plan, results)
    return {"results": results}


def _autotune(config: Config, flags: Sequence[str], seconds: float, budget_s: float) -> dict[str, Any]:
    from sf.bench.autotune import TUNED, Search, settings_of  # noqa: PLC0415
    from sf.bench.layers import LAYERS  # noqa: PLC0415
    from sf.plan import make_plan  # noqa: PLC0415
    from sf.supervisor import ChildError  # noqa: PLC0415

    def measure(settings: Settings) -> float | None:
        try:
            plan = make_plan(config.replace(**settings))
            fps = LAYERS["training"](plan, seconds)["fps"]
        except (ValueError, ChildError) as error:
            _say(f"{_flags(settings)}: does not work ({error})")
            return None
        _say(f"{_flags(settings)}: {fps:,.0f} frames/s")
        return fps

    started_at = time.monotonic()
    search = Search(measure, lambda: time.monotonic() - started_at > budget_s)
    start = settings_of(config, make_plan(config).num_workers)
    given = {word.lstrip("-").split("=")[0].replace("-", "_") for word in flags if word.startswith("--")}
    names = [name for name in TUNED if name not in given]
    best = search.climb(start, names)
    ratio = None if best is start else search.confirm(start, best)
    if ratio is not None and ratio < 1.0:
        _say(f"what seemed to be faster was noise ({ratio:.2f} times the start, measured again in turn)")
        best, ratio = start, None
    _print_trials(search, best)
    command = shlex.join(["sf-train", *flags, *_flags({name: best[name] for name in names}).split()])
    if ratio is not None:
        print(f"{ratio:.2f} times the speed of the start, measured again in turn:")
    print(f"\n{command}\n", flush=True)
    trials = [{**settings, "fps": fps} for settings, fps in search.trials]
    return {"trials": trials, "best": dict(best), "ratio_to_start": ratio, "command": command}


def _print_layers(plan: Plan, results: dict[str, list[dict[str, Any]]]) -> None:
    sampler = plan.config.sampler
    table = Table(
        title=f"{plan.config.run.env}: {plan.num_workers} workers x {sampler.num_envs_per_worker} envs, "
        f"{len(plan.cores)} cores, {plan.device}"
    )
    for column in ("layer", "frames/s (median)", "rounds", "share of simulation", "time of the parts"):
        table.add_column(column, justify="left" if column in ("layer", "time of the parts") else "right")
    for layer, rounds in results.items():
        ratios = [
            r["fps"] / s["fps"] for r, s in zip(rounds, results.get("simulation", []), strict=False) if s["fps"] > 0
        ]
        parts = [f"{name[:-6]} {100 * value:.0f}%" for name, value in rounds[-1].items() if name.endswith("_share")]
        table.add_row(
            layer,
            f"{statistics.median(r['fps'] for r in rounds):,.0f}",
            " ".join(f"{r['fps']:,.0f}" for r in rounds),
            f"{100 * statistics.median(ratios):.0f}%" if ratios else "-",
            "\n".join(parts),
        )
    Console(width=_WIDTH).print(table)


def _print_trials(search: Search, best: Settings) -> None:
    table = Table(title="trials, fastest first")
    for name in (*best, "frames/s"):
        table.add_column(name, justify="right")
    for settings, fps in sorted(search.trials, key=lambda trial: -(trial[1] or 0.0)):
        table.add_row(*map(str, settings.values()), "-" if fps is None else f"{fps:,.0f}")
    Console(width=_WIDTH).print(table)


def _flags(settings: Settings) -> str:
    return " ".join(f"--{name} {value}" for name, value in settings.items())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
