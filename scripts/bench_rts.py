"""How fast the strategy games are: ticks a second of the engine with two AIs, and the sampler beside bare loops.

    python scripts/bench_rts.py --json benchmarks/rts_2cores.json

One process for each core, pinned, with games of SIMPLE and HIT_AND_RUN against each other and themselves. A game that
has ended begins anew. `ticks_per_second` is of all processes, on the map of 20 x 20 with 20 units and more (mines and
buildings among them); `ticks_per_cpu_second` is of one core, without the time that other programs had it. A table has
bigger maps with more units. The sampler and the bare loop are those of `sf-bench`, on rts_mini.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from recording import json_file, machine
from recording.markdown_table import markdown_table

from sf.tools.commands import cli

MAPS = {  # name: size of the map, more troops of each side at the beginning, room for units of a side
    "20 x 20": (20, 4, 64),
    "20 x 20, more units": (20, 24, 64),
    "40 x 40": (40, 50, 128),
    "80 x 80": (80, 110, 256),
}
PAIRS = (("simple", "simple"), ("simple", "hit_and_run"), ("hit_and_run", "simple"), ("hit_and_run", "hit_and_run"))
_NUM_GAMES = 64  # of a process
_TICKS = 50  # between two looks at which games have ended
_WARMUP = 20  # such parts


@dataclass(frozen=True)
class Options:
    """What to measure."""

    rounds: int = 3
    """How often each figure is taken."""

    seconds: float = 5.0
    """Of each measurement."""

    envs_per_worker: tuple[int, ...] = (32, 64)
    """Also measure the sampler beside the bare loop, with so many games for each core. Empty: not."""

    json: Path | None = None
    """Also write everything to this file."""


def main() -> None:
    options = cli.parse_flags(Options, "bench_rts.py", str(__doc__))
    json_file.require_writable(options.json)
    cores = sorted(os.sched_getaffinity(0))
    maps: dict[str, list[dict[str, float]]] = {name: [] for name in MAPS}
    for _ in range(options.rounds):
        for name, rows in maps.items():
            rows.append(engine(name, cores, options.seconds))
            print(name, rows[-1], flush=True)
        result: dict[str, Any] = {
            "ticks_per_second": median(row["ticks_per_second"] for row in maps["20 x 20"]),
            "ticks_per_cpu_second": median(row["ticks_per_cpu_second"] for row in maps["20 x 20"]),
            "units": median(row["units"] for row in maps["20 x 20"]),
            "maps": maps,
        }
        json_file.write(options.json, {**result, **facts(cores)})
    if options.envs_per_worker:
        result["sampler"] = samplers = sampler(options.envs_per_worker, options.rounds, options.seconds)
        result["sampler_share"] = samplers[options.envs_per_worker[0]]["share"]
    print(table(maps))
    print({name: value for name, value in result.items() if name != "maps"})
    json_file.write(options.json, {**result, **facts(cores)})


def engine(name: str, cores: list[int], seconds: float) -> dict[str, float]:
    """Ticks a second of all cores together, and the mean number of units on a map."""
    with multiprocessing.get_context("spawn").Pool(len(cores)) as pool:
        pool.map(_ready, range(len(cores)), chunksize=1)
        found = pool.starmap(_play, [(name, core, seconds) for core in cores], chunksize=1)
    return {
        "ticks_per_second": round(sum(ticks for ticks, _, _ in found)),
        "ticks_per_cpu_second": round(float(np.mean([ticks for _, ticks, _ in found]))),
        "units": round(float(np.mean([units for _, _, units in found])), 1),
    }


def _ready(_: int) -> None:
    from sf.envs.rts.engine.compiled import warm_up  # noqa: PLC0415  an extra

    warm_up()


def _play(name: str, core: int, seconds: float) -> tuple[float, float, float]:
    from sf.envs.rts.games import Games  # noqa: PLC0415  an extra
    from sf.envs.rts.settings import Settings  # noqa: PLC0415

    os.sched_setaffinity(0, {core})
    size, extra, room = MAPS[name]
    games = Games(Settings(size=size, extra=extra, room=room), range(1 + 1000 * core, 1 + 1000 * core + _NUM_GAMES), 0)
    for g in range(_NUM_GAMES):
        for player, ai in enumerate(PAIRS[g % len(PAIRS)]):
            games.set_ai(g, player, ai)
    games.begin(np.ones(_NUM_GAMES, bool))
    ticks, units, parts, start, cpu_start = 0, 0.0, -_WARMUP, time.perf_counter(), time.process_time()
    while parts < 1 or time.perf_counter() - start < seconds:
        played = games.watch(_TICKS)
        ended = games.winner >= 0
        if ended.any():
            games.begin(ended)
        parts += 1
        if parts == 0:
            start, cpu_start = time.perf_counter(), time.process_time()
        elif parts > 0:
            ticks += played
            units += games.worlds.units["alive"].sum() / _NUM_GAMES
    return ticks / (time.perf_counter() - start), ticks / (time.process_time() - cpu_start), units / parts


def sampler(envs_per_worker: tuple[int, ...], rounds: int, seconds: float) -> dict[int, dict[str, Any]]:
    """By the number of games of a worker: decisions a second of bare loops and of the sampler, in turn, with random
    actions, and the median of their ratio.
    """
    from sf.run.planning import make_plan  # noqa: PLC0415
    from sf.tools.bench.layers import LAYERS  # noqa: PLC0415  torch

    found: dict[int, dict[str, list[float]]] = {num: {"simulation": [], "sampler": []} for num in envs_per_worker}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for num, layers in found.items():
                config = cli.parse(["--env", "rts_mini", "--train_dir", folder, "--experiment", "bench"])
                config = config.replace(restart_behavior="overwrite", summaries_every_sec=1e6, save_every_sec=1e6)
                plan = make_plan(config.replace(num_envs_per_worker=num))
                for layer, rates in layers.items():
                    rates.append(round(LAYERS[layer](plan, seconds)["fps"] / plan.spec.frameskip))
    return {num: {**layers, "share": _share(**layers)} for num, layers in found.items()}


def _share(simulation: list[float], sampler: list[float]) -> float:
    return round(median(ours / bare for ours, bare in zip(sampler, simulation, strict=True)), 3)


def facts(cores: list[int]) -> dict[str, Any]:
    facts = {"cores": len(cores), "load": os.getloadavg(), "kernel": platform.release(), "cpu": machine.cpu()}
    versions = {"python": platform.python_version(), "numba": version("numba"), "numpy": np.__version__}
    return {"machine": facts, "versions": versions}


def table(maps: dict[str, list[dict[str, float]]]) -> str:
    rows = []
    for name, figures in maps.items():
        rates = [figure["ticks_per_second"] for figure in figures]
        units = median(figure["units"] for figure in figures)
        of_cpu = median(figure["ticks_per_cpu_second"] for figure in figures)
        spread = f"{median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        rows.append([name, f"{units:.0f}", spread, f"{of_cpu:,.0f}"])
    return markdown_table(["map", "units", "ticks a second", "of one CPU second"], rows)


if __name__ == "__main__":
    main()
