"""The two kinds of queues side by side: `--queues pipes` and `--queues faster_fifo`.

    python scripts/bench_queues.py --json benchmarks/queues_2cores.json

Everything is measured in turn, pipes first, round after round, and the table has medians.

round trip: two processes send one index to and fro, on one core and on two.
clients: processes that each send an index to one server and wait for its answer, as rollout workers do with a policy
    worker. Answers a second.
training: sf-train with each kind, frames/s without start-up.
kills: two processes put and one passes on what it gets; at a random moment one of them is killed and replaced. Where
    nothing is passed on any more, the queues are locked, and new ones are made. For faster-fifo it also counts which
    deaths were inside of a queue: at those a run ends.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Full
from statistics import median
from typing import Any, get_args, get_type_hints

import numpy as np
from process_session import run_bounded
from recording import json_file
from recording.markdown_table import markdown_table

from sf.config.flags.sampler import SamplerConfig
from sf.shared.queues import IndexQueue, Queues, make_queues
from sf.system.arrays import Field, SharedArrays
from sf.system.processes.creator import die_with_creator
from sf.tools.commands import cli

KINDS = get_args(get_type_hints(SamplerConfig)["queues"])
CLIENTS = (1, 8, 72)
KILLS = ("deaths", "inside", "locked", "locked_unforeseen")
ENVS = ("doom_battle", "doom_duel")
LOCKED_AFTER_S = 1.0  # without a message, where they come by the thousand
START_UP_S = 60.0


@dataclass(frozen=True)
class Options:
    """What to measure."""

    rounds: int = 3
    """How often each figure is taken."""

    seconds: float = 2.0
    """Of each measurement of the queues alone."""

    training_seconds: float = 60.0
    """Of each run of sf-train; 0: none."""

    kills: int = 1000
    """Deaths of each kind."""

    json: Path | None = None
    """Also write everything to this file."""


class Processes:
    """Forked from this one; killed at the end."""

    def __init__(self) -> None:
        self._all: list[BaseProcess] = []

    def start(self, body: Callable[..., Any], *args: Any, core: int | None = None) -> BaseProcess:
        process = get_context("fork").Process(target=_run, args=(core, body, *args), daemon=True)
        process.start()
        self._all.append(process)
        return process

    def require_alive(self) -> None:
        """Raises RuntimeError where one has ended by itself."""
        for process in self._all:
            if not process.is_alive():
                raise RuntimeError(f"process {process.pid} has ended by itself: its traceback is above")

    def kill(self, process: BaseProcess) -> None:
        process.kill()
        process.join()
        self._all.remove(process)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in list(self._all):
            self.kill(process)


def _run(core: int | None, body: Callable[..., Any], *args: Any) -> None:
    die_with_creator()
    if core is not None:
        os.sched_setaffinity(0, {core})
    body(*args)


def main() -> None:
    options = cli.parse_flags(Options, "bench_queues.py", str(__doc__))
    json_file.require_writable(options.json)
    figures: dict[str, dict[str, list[float]]] = {}

    def measure(name: str, figure: Callable[[str], float]) -> None:
        for kind in KINDS:
            figures.setdefault(name, {}).setdefault(kind, []).append(round(figure(kind), 1))
        print(name, {kind: values[-1] for kind, values in figures[name].items()}, file=sys.stderr, flush=True)

    cores = sorted(os.sched_getaffinity(0))
    machine = {"cpu": platform.processor(), "cores": len(cores), "kernel": platform.release()}
    for _ in range(options.rounds):
        for name, pair in (("one core", (cores[0], cores[0])), ("two cores", (cores[0], cores[-1]))):
            measure(f"round trip on {name}, us", lambda kind, pair=pair: round_trip_us(kind, pair, options.seconds))
        for num in CLIENTS:
            measure(f"{num} clients, answers/s", lambda kind, num=num: answers_per_s(kind, num, options.seconds))
        for env in ENVS if options.training_seconds else ():
            measure(f"{env}, frames/s", lambda kind, env=env: train(kind, env, options.training_seconds))
        json_file.write(options.json, {"machine": machine, "figures": figures})
    kills = {kind: kill_many(kind, options.kills) for kind in KINDS}
    json_file.write(options.json, {"machine": machine, "figures": figures, "kills": kills})
    print(table(figures, kills))


def round_trip_us(kind: str, cores: tuple[int, int], seconds: float) -> float:
    queues = make_queues(kind)
    there, back = queues.make(10), queues.make(10)
    return 1e6 / rate([(pass_on_for_ever, there, back)], [(ask_for_ever, there, back)], cores, seconds)


def answers_per_s(kind: str, num: int, seconds: float) -> float:
    queues = make_queues(kind)
    requests = queues.make(2 * num)
    inboxes = [queues.make(2) for _ in range(num)]
    clients = [(ask_for_ever, requests, inbox, idx) for idx, inbox in enumerate(inboxes)]
    return rate([(serve_for_ever, requests, inboxes)], clients, None, seconds)


def rate(servers: list[tuple], clients: list[tuple], cores: tuple[int, int] | None, seconds: float) -> float:
    """Answers that the clients get in a second, all together, once they have begun."""
    counts = SharedArrays([Field("counts", (len(clients),), np.int64)])["counts"]
    server_core, client_core = cores or (None, None)
    with Processes() as processes:
        for body, *args in servers:
            processes.start(body, *args, core=server_core)
        for idx, (body, *args) in enumerate(clients):
            processes.start(body, counts, idx, *args, core=client_core)
        while not counts.all():
            processes.require_alive()
            time.sleep(0.01)
        before, started = counts.sum(), time.perf_counter()
        time.sleep(seconds)
        answers_per_s = float((counts.sum() - before) / (time.perf_counter() - started))
        processes.require_alive()
        return answers_per_s


def ask_for_ever(counts: np.ndarray, own: int, requests: IndexQueue, inbox: IndexQueue, index: int = 0) -> None:
    while True:
        requests.put(index)
        inbox.get_many()
        counts[own] += 1


def serve_for_ever(requests: IndexQueue, inboxes: list[IndexQueue]) -> None:
    while True:
        for index in requests.get_many():
            inboxes[index].put(index)


def pass_on_for_ever(queue: IndexQueue, passed_on: IndexQueue) -> None:
    while True:
        passed_on.put_many(queue.get_many())


def train(kind: str, env: str, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sf", f"--env={env}", "--num_workers=2", "--num_envs_per_worker=8"]
        command += [f"--queues={kind}", f"--train_dir={folder}", "--experiment=run", f"--train_for_seconds={seconds:g}"]
        run_bounded(command, Path(folder, "log"), seconds + START_UP_S)
        summary = Path(folder, "run", "summary.json")
        if not summary.exists():
            sys.exit(Path(folder, "log").read_text())
        return float(json.loads(summary.read_text())["steady_env_frames_per_second"])


def kill_many(kind: str, num: int) -> dict[str, int]:
    """Deaths; those inside of a queue, as its kind says; queues in which nothing went on, and those of them in which
    none had died inside."""
    rng, kills = random.Random(0), dict.fromkeys(KILLS, 0)
    while kills["deaths"] < num:
        with Processes() as processes:
            kill_until_locked(make_queues(kind), processes, rng, kills, num)
    print(kind, kills, file=sys.stderr, flush=True)
    return kills


def kill_until_locked(
    queues: Queues, processes: Processes, rng: random.Random, kills: dict[str, int], num: int
) -> None:
    """Or until so many have died."""
    queue = queues.make(1000)
    counts = SharedArrays([Field("counts", (1,), np.int64)])["counts"]
    bodies = {"puts": (put_for_ever, queue), "puts too": (put_for_ever, queue), "gets": (count_for_ever, queue, counts)}
    alive = {role: processes.start(*body) for role, body in bodies.items()}
    inside = 0
    while kills["deaths"] < num:
        processes.require_alive()
        if not goes_on(counts):
            kills["locked"] += 1
            kills["locked_unforeseen"] += not inside
            return
        time.sleep(rng.random() * 0.003)
        role = rng.choice(list(alive))
        processes.kill(alive[role])
        was_inside = queues.may_be_locked_by(alive[role].pid)
        inside += was_inside
        kills["inside"] += was_inside
        kills["deaths"] += 1
        alive[role] = processes.start(*bodies[role])


def put_for_ever(queue: IndexQueue) -> None:
    for index in itertools.cycle(range(1000)):
        with suppress(Full):
            queue.put(index)


def count_for_ever(queue: IndexQueue, counts: np.ndarray) -> None:
    while True:
        counts[0] += len(queue.get_many())


def goes_on(counts: np.ndarray) -> bool:
    before, ends = int(counts[0]), time.monotonic() + LOCKED_AFTER_S
    while counts[0] == before:
        if time.monotonic() > ends:
            return False
        time.sleep(1e-4)
    return True


def table(figures: dict[str, dict[str, list[float]]], kills: dict[str, dict[str, int]]) -> str:
    rows = [[name, *(f"{median(by_kind[kind]):,.0f}" for kind in KINDS)] for name, by_kind in figures.items()]
    rows += [[what.replace("_", ", "), *(f"{kills[kind][what]:,}" for kind in KINDS)] for what in KILLS]
    return markdown_table(["", *KINDS], rows)


if __name__ == "__main__":
    main()
