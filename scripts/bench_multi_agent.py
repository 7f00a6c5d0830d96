"""What several agents cost: pairs of runs in turn, and the memory of one pair.

    python scripts/bench_multi_agent.py --json benchmarks/multi_agent_2cores.json

Each pair is two commands that differ in one thing. The figure of a pair is the second one's env steps/s by the first
one's, without start-up, round after round; of "memory" it is bytes by bytes, after the same time. A pair whose
environment is not installed is left out, and says so. Each network is trained for a while first, so that its compiled
steps are there.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from documentation.memory_of_a_run import measured
from learning.tasks import ENVIRONMENTS
from process_session import run_bounded
from recording import json_file, machine
from recording.markdown_table import markdown_table

from sf.tools.commands import cli

START_UP_S = 60.0


@dataclass(frozen=True)
class Pair:
    """Two commands: `flags` with `base`, and with `other`. package: that has to be installed."""

    flags: str
    base: str
    other: str
    package: str
    goal: str
    is_of_memory: bool = False


PAIRS = {
    "simple_spread: critic all / own": Pair(
        "--env mpe2.simple_spread_v3:parallel_env --num_workers 2", "--critic own", "--critic all", "mpe2", "0.85"
    ),
    "simple_spread: mixer monotonic / none": Pair(
        "--env mpe2.simple_spread_v3:parallel_env --num_workers 2 --share_reward all",
        "--mixer none",
        "--mixer monotonic",
        "mpe2",
        "-",
    ),
    "12 agents: two kinds / one with the spaces of both": Pair(
        "--num_workers 2 --show_agent true", "--env kinds:OneKind", "--env kinds:TwoKinds", "sf", "0.95"
    ),
    "12 agents: two kinds / one, padded, which is told nothing": Pair(
        "--num_workers 2", "--env kinds:Padded", "--env kinds:TwoKinds", "sf", "-"
    ),
    "MAgent battle, 162 agents, memory: critic team / own": Pair(
        "--env magent2.environments.battle_v4:parallel_env --num_workers 2 --num_envs_per_worker 2",
        "--critic own",
        "--critic team",
        "magent2",
        "at most 1.5",
        is_of_memory=True,
    ),
}


@dataclass(frozen=True)
class Options:
    """What to measure."""

    rounds: int = 3
    """How often each figure is taken."""

    seconds: float = 30.0
    """Of each run."""

    warm_up: float = 120.0
    """Seconds of a run of each command before the first round, in which its steps are compiled; 0: none."""

    pairs: tuple[str, ...] = tuple(PAIRS)
    """Names, or parts of names, of the pairs."""

    json: Path | None = None
    """Also write everything to this file."""


def main() -> None:
    options = cli.parse_flags(Options, "bench_multi_agent.py", str(__doc__))
    json_file.require_writable(options.json)
    figures: dict[str, list[tuple[float, float]]] = {}
    for name, pair in PAIRS.items():
        if not any(part in name for part in options.pairs):
            continue
        if find_spec(pair.package) is None:
            print(f"{name}: left out, pip install {pair.package}", file=sys.stderr)
            continue
        figure: Callable[[str, float], float] = _memory if pair.is_of_memory else _env_steps_per_s
        if not pair.is_of_memory and options.warm_up:
            for flags in (pair.base, pair.other):
                _env_steps_per_s(f"{pair.flags} {flags}", options.warm_up)
        for _ in range(1 if pair.is_of_memory else options.rounds):
            base, other = (figure(f"{pair.flags} {flags}", options.seconds) for flags in (pair.base, pair.other))
            figures.setdefault(name, []).append((base, other))
            print(f"{name}: {base:,.0f}, {other:,.0f}, {other / base:.3f}", file=sys.stderr, flush=True)
        json_file.write(options.json, {"machine": machine.describe("cpu"), "figures": figures})
    rows = [
        [
            name,
            f"{median(base for base, _ in each):,.0f}",
            f"{median(other for _, other in each):,.0f}",
            ", ".join(f"{other / base:.2f}" for base, other in each),
            PAIRS[name].goal,
        ]
        for name, each in figures.items()
    ]
    print(markdown_table(["pair", "first", "second", "second / first", "at least"], rows))


def _env_steps_per_s(flags: str, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sf", *shlex.split(flags), f"--train_dir={folder}", "--experiment=run"]
        command += [f"--train_for_seconds={seconds:g}"]
        paths = os.pathsep.join([str(ENVIRONMENTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        run_bounded(command, Path(folder, "log"), seconds + START_UP_S, variables={"PYTHONPATH": paths})
        summary = Path(folder, "run", "summary.json")
        if not summary.exists():
            sys.exit(Path(folder, "log").read_text())
        return float(json.loads(summary.read_text())["steady_env_frames_per_second"])


def _memory(flags: str, seconds: float) -> float:
    """Returns the bytes that all processes of a run have."""
    return float(sum(role.private + role.shared for role in measured(shlex.split(flags), int(seconds)).values()))


if __name__ == "__main__":
    main()
