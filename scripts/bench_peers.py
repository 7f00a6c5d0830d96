"""Frames per second of this project and of Sample Factory 2.1.1, on the same machine, in turn: A B A B ...

    python scripts/bench_peers.py --env doom_battle --seconds 120 --rounds 3 --json benchmarks/NAME.json

Sample Factory is installed from PyPI into a virtual environment in --peers_dir, which later calls reuse. Both
trainers get the same environment, number of environments, rollout and batch size; the rest are each one's
defaults for that environment, and Sample Factory's are printed with the result. The map of doom_battle is one
file: battle.wad there is D3_battle.wad here, byte for byte. Sample Factory computes in float32, one thread a
process; `--own_flags="--precision float32 --learner_threads 1"` makes this project do so too.

A frame is one tic of the simulator that was trained on: decisions x frameskip. Two rates are reported.

steady: without start-up, from the first optimiser step on.
    Sample Factory: its log reports "Total num frames" every 5 s, a count that moves by whole batches. The
    rate is the least-squares slope through all reports from the first above 0 to the last before the stop, so
    that a batch that falls just before or after a report does not tilt it.
    This project: `steady_env_frames_per_second` of its summary.json.
whole run: start-up included.
    Sample Factory: frames of the last report over the time from the launch of the process to that report.
    This project: `env_frames / seconds` of its summary.json.

The ratio is taken within each round, whose two runs follow one another, since a shared machine drifts.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import venv
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from statistics import linear_regression, median
from typing import Any, Literal

import tyro
from process_session import run_bounded

SAMPLE_FACTORY = "sample-factory==2.1.1"
REPOSITORY = Path(__file__).resolve().parent.parent
START_UP_S = 60.0  # what a run may take beyond --seconds before it must stop

REPORT = re.compile(r"^\[(\S+ \S+?)\].* Total num frames: ([1-9]\d*)\.", re.MULTILINE)
"""A status line of Sample Factory's log: its time, and the frames trained on so far."""

SHOWN_SETTINGS = (
    "env_frameskip", "res_w", "res_h", "encoder_conv_architecture", "encoder_conv_mlp_layers", "nonlinearity",
    "use_rnn", "rnn_type", "rnn_size", "worker_num_splits", "policy_workers_per_policy", "async_rl",
    "num_batches_per_epoch", "num_epochs", "with_vtrace", "normalize_input", "normalize_returns",
)  # fmt: skip
"""Settings of Sample Factory that decide how much work a frame is. The JSON file has all of them."""

ALE = "ale-py==0.10.2"
"""The last that registers its games with Sample Factory's gymnasium 0.29."""


@dataclass(frozen=True)
class Options:
    """What to compare, and for how long."""

    env: str = "doom_battle"
    """doom_* or atari_*: a name that both trainers know."""

    seconds: float = 120.0
    """Wall time of each run, start-up included."""

    rounds: int = 3
    """How often each trainer runs."""

    num_workers: int = 2
    """Rollout worker processes."""

    num_envs_per_worker: int = 8
    """Environments of one rollout worker."""

    batch_size: int = 2048
    """Samples of one step of the optimiser."""

    rollout: int = 32
    """Steps of one trajectory."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Where both trainers run their networks."""

    peers_dir: Path = REPOSITORY / ".peers"
    """Holds Sample Factory's virtual environment."""

    json: Path | None = None
    """Also write everything to this file."""

    peer_flags: str = ""
    """More flags for Sample Factory, as one string: "--worker_num_splits=1"."""

    own_flags: str = ""
    """More flags for this project, as one string: "--precision float32"."""

    def __post_init__(self) -> None:
        if not self.env.startswith(("doom_", "atari_")):
            raise ValueError(f"env is {self.env}: name one that both trainers know, doom_* or atari_*")
        if self.seconds < 30:
            raise ValueError(f"seconds is {self.seconds}: at least 30, for Sample Factory reports every 5 s")
        if self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds}: at least 1")

    @property
    def shared_flags(self) -> list[str]:
        names = ("env", "num_workers", "num_envs_per_worker", "batch_size", "rollout")
        return [f"--{name}={getattr(self, name)}" for name in names]


@dataclass(frozen=True)
class Result:
    """One run of one trainer."""

    steady_frames_per_second: float
    env_frames: int
    seconds: float
    """Wall time in which env_frames were trained on, start-up included."""

    left_behind: int
    """Processes that the trainer did not end."""

    @property
    def whole_run_frames_per_second(self) -> float:
        return self.env_frames / self.seconds


def main() -> None:
    # A shell without job control starts background jobs with SIGINT ignored, which trainers would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the trainers are ended on the way out
    options = tyro.cli(Options, description=__doc__)
    peer_python = install_sample_factory(options)
    machine = describe_machine()
    rounds: list[tuple[Result, Result]] = []
    with tempfile.TemporaryDirectory(prefix="bench_peers_") as folder:
        train_dir = Path(folder)
        for idx in range(options.rounds):
            peer = run_sample_factory(options, peer_python, train_dir, f"peer_{idx}")
            own = run_own(options, train_dir, f"own_{idx}")
            rounds.append((peer, own))
            print(f"round {idx}: {peer}, {own}", file=sys.stderr)
        peer_config = json.loads((train_dir / "peer_0" / "config.json").read_text())
    for name in ("train_dir", "command_line", "cli_args"):  # they hold the temporary folder, which is gone
        del peer_config[name]
    ratios = [own.steady_frames_per_second / peer.steady_frames_per_second for peer, own in rounds]
    print(as_table(machine, peer_config, rounds, ratios))
    if options.json is not None:
        record = {
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "machine": machine,
            "sample_factory_config": peer_config,
            "rounds": [{"sample_factory": asdict(peer), "own": asdict(own)} for peer, own in rounds],
            "ratios": ratios,
            "median_ratio": median(ratios),
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n")


def install_sample_factory(options: Options) -> Path:
    """The interpreter of a virtual environment with Sample Factory and the torch and vizdoom of this one."""
    folder = options.peers_dir / SAMPLE_FACTORY.replace("==", "-")
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        (options.peers_dir / ".gitignore").write_text("*\n")
    torch = version("torch").split("+")[0]  # without the name of the build: pip finds it on any index
    packages = [SAMPLE_FACTORY, f"torch=={torch}", f"vizdoom=={version('vizdoom')}", "numpy<2"]
    if options.env.startswith("atari_"):
        packages.append(ALE)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    if options.env.startswith("atari_"):
        # Importing ale_py registers the games. Sample Factory never does; a .pth line runs in every process.
        site_packages = next(folder.glob("lib/python*/site-packages"))
        (site_packages / "register_atari.pth").write_text("import ale_py\n")
    return python


def run_sample_factory(options: Options, python: Path, train_dir: Path, experiment: str) -> Result:
    family = "vizdoom" if options.env.startswith("doom_") else "atari"
    device = {"cpu": "cpu", "cuda": "gpu"}[options.device]
    command = [str(python), "-m", f"sf_examples.{family}.train_{family}", f"--device={device}"]
    command += [f"--train_dir={train_dir}", f"--experiment={experiment}", *options.shared_flags]
    command += shlex.split(options.peer_flags)
    # No --train_for_seconds: 2.1.1 never advances the clock that the flag is compared with. It gets a SIGINT.
    log_file = train_dir / f"{experiment}.log"
    started, stopped, left_behind = run_bounded(command, log_file, options.seconds)
    log = re.sub(r"\x1b\[[0-9;]*m", "", log_file.read_text())  # without colours
    reports = []
    for stamp, frames in REPORT.findall(log):
        at = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").timestamp()
        if at <= stopped:
            reports.append((at, int(frames)))
    if len(reports) < 3:
        raise SystemExit(f"Sample Factory trained too little: raise --seconds. Its log ends:\n{log[-2000:]}")
    at, frames = reports[-1]
    return Result(linear_regression(*zip(*reports, strict=True)).slope, frames, at - started, left_behind)


def run_own(options: Options, train_dir: Path, experiment: str) -> Result:
    command = [sys.executable, "-m", "sf", f"--device={options.device}"]
    command += [f"--train_dir={train_dir}", f"--experiment={experiment}", *options.shared_flags]
    command += [f"--train_for_seconds={options.seconds}", *shlex.split(options.own_flags)]
    log_file = train_dir / f"{experiment}.log"
    _, _, left_behind = run_bounded(command, log_file, options.seconds + START_UP_S)
    summary_file = train_dir / experiment / "summary.json"
    if not summary_file.exists():
        raise SystemExit(f"{shlex.join(command)} left no summary.json:\n{log_file.read_text()[-2000:]}")
    summary = json.loads(summary_file.read_text())
    steady = summary["steady_env_frames_per_second"]
    return Result(steady, summary["env_frames"], summary["seconds"], left_behind)


def describe_machine() -> dict[str, Any]:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude=*"]
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_before": os.getloadavg(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "vizdoom": version("vizdoom"),
        "commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip(),
    }


def as_table(
    machine: dict[str, Any],
    peer_config: dict[str, Any],
    rounds: list[tuple[Result, Result]],
    ratios: list[float],
) -> str:
    settings = ", ".join(f"{name}={peer_config[name]}" for name in SHOWN_SETTINGS if name in peer_config)
    lines = [
        f"{peer_config['env']} on {machine['cores']} cores of {machine['cpu']}, frames/s: steady (whole run)",
        f"{SAMPLE_FACTORY}, float32: {settings}",
        "",
        "| round | Sample Factory | this project | ratio of steady |",
        "|---|---|---|---|",
    ]
    for idx, (pair, ratio) in enumerate(zip(rounds, ratios, strict=True)):
        cells = [f"{r.steady_frames_per_second:,.0f} ({r.whole_run_frames_per_second:,.0f})" for r in pair]
        lines.append(f"| {idx} | {cells[0]} | {cells[1]} | {ratio:.2f} |")
    return "\n".join([*lines, f"| median | | | {median(ratios):.2f} |"])


if __name__ == "__main__":
    main()
