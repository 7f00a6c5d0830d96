"""Sample Factory 2.1.1.

Rate: its log reports "Total num frames" every 5 s, a count that moves by whole batches. All reports count, from the
first above 0 to the last before the stop.

Return: its log prints the sum of what the learner gets. On Atari these are clipped rewards of one life. The scores of
whole games are only in its TensorBoard file, so the return is read from there, each 5 s. Sample Factory averages the
latest 100 episodes, or fewer if there are not as many yet. The return counts once 100 episodes of the mean length fit
into the frames.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from peers import virtual_envs
from peers.options import Kind, Options
from peers.trainer import Report, Result, ReturnReport, Trainer, result_of
from process_session import run_bounded

PACKAGE = "sample-factory==2.1.1"
TITLE = "Sample Factory 2.1.1"

ALE = "ale-py==0.10.2"
"""The last that registers its games with Sample Factory's gymnasium 0.29."""

REPORT = re.compile(r"^\[(\S+ \S+?)\].* Total num frames: ([1-9]\d*)\.", re.MULTILINE)
"""A status line of its log: its time, and the frames trained on so far."""

UNKNOWN = re.compile(r"Env name (\S+) is not registered")

EPISODES = 100

RETURNS: dict[Kind, tuple[str, str]] = {
    "atari": ("policy_stats/avg_RecordEpisodeStatistics_reward", "policy_stats/avg_RecordEpisodeStatistics_len"),
    "mujoco": ("reward/reward", "len/len"),
    "doom": ("reward/reward", "len/len"),
    "box2d": ("reward/reward", "len/len"),
    "gymnasium": ("reward/reward", "len/len"),
}
"""In its TensorBoard file: the mean return of the latest episodes, and their mean length in frames."""

_GAMES = {
    "asteroids": "asteroid",
    "kung_fu_master": "kongfumaster",
    "montezuma_revenge": "montezuma",
    "private_eye": "privateye",
}
"""The names of games there. Of all others it leaves out the underscores."""

_TASKS = {
    "Ant": "ant",
    "HalfCheetah": "halfcheetah",
    "Hopper": "hopper",
    "Humanoid": "humanoid",
    "InvertedDoublePendulum": "doublependulum",
    "InvertedPendulum": "pendulum",
    "Reacher": "reacher",
    "Swimmer": "swimmer",
    "Walker2d": "walker",
}
"""The names of MuJoCo's tasks there. All are v4 of Gymnasium."""


def name_there(env: str) -> str | None:
    """Sample Factory's name of an environment; None if it has none."""
    kind, _, name = env.partition("_")
    if kind == "atari":
        return f"atari_{_GAMES.get(name, name.replace('_', ''))}"
    if kind == "doom":
        return env
    task = _TASKS.get(env.partition("-")[0])
    return task and f"mujoco_{task}"


def refusal(env: str) -> str | None:
    return None if name_there(env) else f"Sample Factory has no {env}: its tasks of MuJoCo are {', '.join(_TASKS)}"


def install(kind: Kind, peers_dir: Path) -> Path:
    packages = [PACKAGE, f"vizdoom=={version('vizdoom')}", "numpy<2"]
    if kind == "atari":
        packages.append(ALE)
    elif kind == "mujoco":
        packages += [PACKAGE.replace("==", "[mujoco]=="), "mujoco<2.5"]
    elif kind == "box2d":
        packages.append("box2d")
    folder = virtual_envs.folder_of(PACKAGE, peers_dir)
    python = virtual_envs.install(folder, packages)
    if kind == "atari":
        # Importing ale_py registers the games. Sample Factory never does; a .pth line runs in every process.
        site_packages = next(folder.glob("lib/python*/site-packages"))
        (site_packages / "register_atari.pth").write_text("import ale_py\n")
    return python


def program(python: Path, verb: Literal["train", "enjoy"], kind: Kind) -> list[str]:
    """The start of a command line: its program for this kind of environment."""
    examples: dict[Kind, str] = {"doom": "vizdoom", "atari": "atari", "mujoco": "mujoco"}
    example = examples.get(kind)
    return [str(python), "-m", f"sf_examples.{example}.{verb}_{example}" if example else f"sf_examples.{verb}_gym_env"]


def device_there(device: Literal["cpu", "cuda"]) -> str:
    return {"cpu": "cpu", "cuda": "gpu"}[device]


def run(options: Options, python: Path, train_dir: Path, experiment: str) -> Result:
    command = [*program(python, "train", options.kind), f"--env={name_there(options.env)}"]
    command += [f"--device={device_there(options.device)}"]
    command += [f"--train_dir={train_dir}", f"--experiment={experiment}", *options.shared_flags]
    command += ["--train_for_env_steps=10000000000"]  # some environments have a limit of their own
    returns: Returns | None = None
    is_done: Callable[[], bool] | None = None
    if options.to_return is not None:
        command += [f"--stats_avg={EPISODES}", "--experiment_summaries_interval=5", "--flush_summaries_interval=5"]
        returns = Returns(train_dir / experiment / ".summary" / "0", *RETURNS[options.kind])
        is_done = partial(returns.have_reached, options.to_return)
    command += shlex.split(options.peer_flags)
    # No --train_for_seconds: 2.1.1 never advances the clock that the flag is compared with. It gets a SIGINT.
    log_file = train_dir / f"{experiment}.log"
    ran = run_bounded(command, log_file, options.seconds, is_done)
    log = without_colours(log_file.read_text())
    if unknown := UNKNOWN.search(log):
        raise SystemExit(f"Sample Factory has no environment {unknown[1]}: name another --env")
    return result_of(TITLE, log, reports_of(log), returns.read() if returns else [], options.to_return, ran)


def without_colours(log: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", log)


def reports_of(log: str) -> list[Report]:
    """Without those before the first batch."""
    times = ((datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f"), frames) for stamp, frames in REPORT.findall(log))
    return [Report(at.timestamp(), int(frames)) for at, frames in times]


class Returns:
    """The mean returns in the TensorBoard file of a run, which may still be growing."""

    def __init__(self, folder: Path, tag: str, length_tag: str) -> None:
        from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415  slow, and for few
            EventAccumulator,
        )

        self._file = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        self._folder, self._tags = folder, (tag, length_tag)

    def read(self) -> list[ReturnReport]:
        """All until now, from the first that is over EPISODES episodes."""
        if not self._folder.exists():
            return []
        self._file.Reload()
        if not set(self._tags) <= set(self._file.Tags()["scalars"]):
            return []
        returns, lengths = (self._file.Scalars(tag) for tag in self._tags)
        return [
            ReturnReport(each.wall_time, each.step, each.value)
            for each, length in zip(returns, lengths, strict=False)  # the last pair may be half written
            if each.step >= EPISODES * length.value
        ]

    def have_reached(self, to_return: float) -> bool:
        return any(each.mean_return >= to_return for each in self.read())


def settings(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "config.json").read_text())
    for name in ("train_dir", "command_line", "cli_args"):  # they hold the temporary folder, which is gone
        del found[name]
    return found


SAMPLE_FACTORY = Trainer(
    title=TITLE,
    refusal=refusal,
    install=install,
    run=run,
    settings=settings,
    shown_settings=(
        "env_frameskip", "res_w", "res_h", "encoder_conv_architecture", "encoder_conv_mlp_layers", "nonlinearity",
        "encoder_mlp_layers", "use_rnn", "rnn_type", "rnn_size", "num_workers", "num_envs_per_worker", "rollout",
        "batch_size", "worker_num_splits", "policy_workers_per_policy", "async_rl", "num_batches_per_epoch",
        "num_epochs", "with_vtrace", "normalize_input", "normalize_returns",
    ),
)  # fmt: skip
