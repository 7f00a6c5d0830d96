"""`sf-bench`: frames per second of each layer of the system, or with --autotune the fastest settings."""

from __future__ import annotations

import math
import shlex
import statistics
import sys
import tempfile
import time
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.table import Table
from rich.text import Text

from sf.config import Config
from sf.envs.field_types import require
from sf.metrics.display.console import OutputConsole
from sf.system.machine.cores import num_usable_cores
from sf.system.messages import said_to
from sf.tools.commands import cli
from sf.tools.report.outputs import require_outputs, write_json

if TYPE_CHECKING:
    from sf.run.plan import Plan
    from sf.tools.bench.autotune import Search, Settings

Layer = Literal["simulation", "sampler", "inference", "training"]

_DESCRIPTION = """\
Measure the frames per second of each layer of the system, in turn, on this machine:

  simulation   bare loops of random actions, one process per worker: the upper limit of this machine
  sampler      rollout workers, queues and shared memory, with random actions and no network
  inference    the sampler with the real policy workers; trajectories are discarded
  training     everything

A run on a CPU compiles its networks while it trains; here they are compiled first, once for each network, which takes
half a minute of a core or more. --compile false measures without.

With --autotune, try numbers of workers, environments, policy workers and batch sizes, and print the fastest command.
All flags of sf-train are accepted; --autotune does not change those that are given.

  sf-bench --env doom_battle --num_workers 2 --num_envs_per_worker 16
  sf-bench --env doom_battle --autotune
"""
_WIDTH = 120


@dataclass(frozen=True)
class BenchFlags:
    """What to measure, and for how long."""

    seconds: float | None = None
    """Seconds to measure each layer per round, or each trial of --autotune. Default: 20, or 5 with --autotune."""

    rounds: int = 3
    """Number of times to measure each layer."""

    layers: tuple[Layer, ...] = ("simulation", "sampler", "inference", "training")
    """Layers to measure."""

    autotune: cli.Switch = False
    """Search for the fastest settings instead of measuring layers."""

    budget_s: float = 120.0
    """Time for the search of --autotune, in seconds."""

    json: Path | None = None
    """Also write the result to this file."""

    config: Config = field(default_factory=Config)

    def __post_init__(self) -> None:
        for name in ("seconds", "budget_s"):
            value = getattr(self, name)
            require(value is None or 0.0 < value < math.inf, f"{name} is {value}: a number of seconds above 0")
        require(self.rounds >= 1, f"rounds is {self.rounds}: at least 1")
        require(bool(self.layers), f"layers is empty: name some of {', '.join(typing.get_args(Layer))}")


def main() -> None:
    """Measure and print; end with 0, 1 after a failure, 2 after a user's mistake, 130 after Ctrl-C."""
    args = sys.argv[1:]
    with cli.exit_status(), tempfile.TemporaryDirectory() as train_dir:
        where = {"train_dir": train_dir, "experiment": "bench"}
        start = cli.starting_config([*args, *cli.arguments(where)])
        flags = cli.parse_flags(BenchFlags, "sf-bench", _DESCRIPTION, args, BenchFlags(config=start))
        require_outputs(flags.json)
        named = {word.lstrip("-").split("=")[0].replace("-", "_") for word in args if word.startswith("--")}
        given = {name: value for name, value in flags.config.flat().items() if name in named}
        config = flags.config.replace(
            **where, restart_behavior="overwrite", summaries_every_sec=1e6, save_every_sec=1e6
        )
        if flags.autotune:
            result = _autotune(config, given, flags.seconds or 5.0, flags.budget_s)
        else:
            result = _measure_layers(config, flags.layers, flags.seconds or 20.0, flags.rounds)
        write_json(flags.json, {"flags": cli.arguments(given), "cores": num_usable_cores(), **result})


def _measure_layers(config: Config, layers: Sequence[str], seconds: float, rounds: int) -> dict[str, Any]:
    from sf.run.planning import make_plan  # noqa: PLC0415
    from sf.tools.bench.layers import LAYERS  # noqa: PLC0415  torch is slow to import: not for --help

    plan = make_plan(config)
    if {"inference", "training"} & set(layers):
        _make_programs(plan)
    results: dict[str, list[dict[str, Any]]] = {layer: [] for layer in layers}
    for round_idx in range(rounds):
        for layer in layers:
            result = LAYERS[layer](plan, seconds)
            results[layer].append(result)
            _say(f"round {round_idx + 1} {layer}: {result['fps']:,.0f} frames/s")
    _print_layers(plan, results)
    return {"results": results}


def _autotune(config: Config, given: Mapping[str, Any], seconds: float, budget_s: float) -> dict[str, Any]:
    """given: flags that stay as they are."""
    from sf.run.children.verdict import ChildError  # noqa: PLC0415
    from sf.run.planning import make_plan  # noqa: PLC0415
    from sf.tools.bench.autotune import TUNED, Choice, Search, settings_of  # noqa: PLC0415
    from sf.tools.bench.layers import LAYERS  # noqa: PLC0415

    def measure(settings: Settings) -> float:
        try:
            fps = LAYERS["training"](make_plan(config.replace(**settings)), seconds)["fps"]
        except (ValueError, ChildError) as error:
            sentence = str(error).partition("\n")[0]  # without the traceback
            _say(f"{shlex.join(cli.arguments(settings))}: does not work ({sentence})")
            raise ValueError(sentence) from None
        _say(f"{shlex.join(cli.arguments(settings))}: {fps:,.0f} frames/s")
        return fps

    plan = make_plan(config)
    _make_programs(plan)
    started_at = time.monotonic()
    search = Search(measure, lambda: time.monotonic() - started_at > budget_s)
    start = settings_of(plan.config, plan.num_workers)
    names = [name for name in TUNED if name not in given]
    found = search.climb(start, names)
    best, ratio, why = Choice(start, None) if found is start else search.confirm(start, found)
    if why is not None:
        _say(why)
    _print_trials(search, best)
    command = shlex.join(["sf-train", *cli.arguments({**given, **{name: best[name] for name in names}})])
    if ratio is not None:
        print(f"{ratio:.2f} times the speed of the start, measured again in turn:")
    print(f"\n{command}\n", flush=True)
    trials = [{**settings, "fps": fps} for settings, fps in search.trials]
    return {"trials": trials, "best": dict(best), "ratio_to_start": ratio, "command": command}


def _make_programs(plan: Plan) -> None:
    from sf.tools.bench.programs import make_programs  # noqa: PLC0415  torch is slow to import: not for --help

    with said_to(_say):
        make_programs(plan)


def _print_layers(plan: Plan, results: dict[str, list[dict[str, Any]]]) -> None:
    sampler = plan.config.sampler
    table = Table(
        title=Text(
            f"{plan.config.run.env}: {plan.num_workers} workers x {sampler.num_envs_per_worker} envs, "
            f"{plan.num_cores} cores, {plan.device}"
        )
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
    OutputConsole(width=_WIDTH).print(table)


def _print_trials(search: Search, best: Settings) -> None:
    table = Table(title="trials, fastest first")
    for name in (*best, "frames/s"):
        table.add_column(name, justify="right")
    for settings, fps in sorted(search.trials, key=lambda trial: -(trial[1] or 0.0)):
        table.add_row(*map(str, settings.values()), "-" if fps is None else f"{fps:,.0f}")
    OutputConsole(width=_WIDTH).print(table)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
