"""Sample Factory 2.1.1.

Rate: its log reports "Total num frames" every 5 s, a count that moves by whole batches. All reports count, from the
first above 0 to the last before the stop.

Return: its log prints the sum of what the learner gets. On Atari these are clipped rewards of one life. The scores of
whole games are only in its TensorBoard file, so the return is read from there, each 5 s. Sample Factory averages the
latest 100 episodes, or fewer if there are not as many yet. The return counts once 100 episodes of the mean length fit
into the frames.

Evaluation of what it learned is by its `enjoy` programs: one environment, `--max_num_episodes`, and
`--eval_deterministic`. They do not seed the environment, which so has a seed of the system. On Atari they report
clipped rewards of one life. So there the score is that of training: the mean of the last 100 whole games, for which no
deterministic one exists.

It plays matches of Atari in `train_matches_with_sample_factory.py`, on the environments of this project.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from peers import virtual_envs
from peers.options import REPOSITORY, Kind, Options, kind_of
from peers.trainer import (
    EPISODES,
    EVALUATION_SEED,
    LOOK_EVERY_S,
    Order,
    Outcome,
    Peer,
    Report,
    Result,
    ReturnReport,
    RunError,
    last_line,
    result_of,
    run_to_end,
)
from process_session import run_bounded

from sf.storage import text_files

PACKAGE = "sample-factory==2.1.1"

ALE = "ale-py==0.10.2"
"""The last that registers its games with Sample Factory's gymnasium 0.29."""

REPORT = re.compile(r"^\[(\S+ \S+?)\].* Total num frames: ([1-9]\d*)\.", re.MULTILINE)
"""A status line of its log: its time, and the frames trained on so far."""

MATCHES = "peers.train_matches_with_sample_factory"
OF_MATCHES = ("gymnasium", "pettingzoo", "multi-agent-ale-py", "ale-py")
"""The packages that sf.envs needs for a match. The peer gets the versions that this project has."""

UNKNOWN = re.compile(r"Env name (\S+) is not registered")

PLAYED = re.compile(r"\(0, (-?[\d.]+(?:e[+-]?\d+)?)\)")
"""The last line of an evaluation: 0 for success, and the mean return. Python ends with status 1 after it."""

_LATEST = 200  # lines of a log, with several reports
_LOADS = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
"""Since torch 2.6 its checkpoints are refused, which hold numbers of numpy. These were made just before."""

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
    if kind_of(env) == "atari_match":
        return env
    kind, _, name = env.partition("_")
    if kind == "atari":
        return f"atari_{_GAMES.get(name, name.replace('_', ''))}"
    if kind == "doom":
        return env
    task = _TASKS.get(env.partition("-")[0])
    return task and f"mujoco_{task}"


class SampleFactory(Peer):
    """It gets the flags that this project gets, where both have them; its examples say the rest."""

    package = PACKAGE
    name = "sample_factory"
    title = "Sample Factory 2.1.1"
    shown_settings = (
        "env_frameskip", "res_w", "res_h", "encoder_conv_architecture", "encoder_conv_mlp_layers", "nonlinearity",
        "encoder_mlp_layers", "use_rnn", "rnn_type", "rnn_size", "num_workers", "num_envs_per_worker", "rollout",
        "batch_size", "worker_num_splits", "policy_workers_per_policy", "async_rl", "num_batches_per_epoch",
        "num_epochs", "with_vtrace", "normalize_input", "normalize_returns",
    )  # fmt: skip

    def refusal(self, env: str) -> str | None:
        return None if name_there(env) else f"Sample Factory has no {env}: its tasks of MuJoCo are {', '.join(_TASKS)}"

    def install(self, kind: Kind) -> None:
        packages = [PACKAGE, f"vizdoom=={version('vizdoom')}", "numpy<2"]
        if kind == "atari":
            packages.append(ALE)
        elif kind == "mujoco":
            packages += [PACKAGE.replace("==", "[mujoco]=="), "mujoco<2.5"]
        elif kind == "box2d":
            packages.append("box2d")
        virtual_envs.install(self.folder, packages)
        if kind == "atari":
            # Importing ale_py registers the games. Sample Factory never does; a .pth line runs in every process.
            site_packages = next(self.folder.glob("lib/python*/site-packages"))
            (site_packages / "register_atari.pth").write_text("import ale_py\n")
        elif kind == "atari_match":
            # By themselves: Sample Factory asks for a gymnasium before 1, so pip says that they conflict.
            virtual_envs.install(
                self.folder, ["numpy<2", *(f"{package}=={version(package)}" for package in OF_MATCHES)]
            )

    def _command(self, verb: Literal["train", "enjoy"], kind: Kind, env: str | None, device: str) -> list[str]:
        """The start of a command line: its program for this kind of environment, the environment and the device."""
        examples: dict[Kind, str] = {"doom": "vizdoom", "atari": "atari", "mujoco": "mujoco"}
        example = examples.get(kind)
        module = f"sf_examples.{example}.{verb}_{example}" if example else f"sf_examples.{verb}_gym_env"
        if kind == "atari_match":
            module = MATCHES
        return [str(self.python), "-m", module, f"--env={env}", f"--device={'cpu' if device == 'cpu' else 'gpu'}"]

    # Speed

    def measure_speed(self, options: Options, train_dir: Path, experiment: str) -> Result:
        command = self._command("train", options.kind, name_there(options.env), options.device)
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
        variables = None
        if options.kind == "atari_match":
            variables = {"PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "scripts")))}
        ran = run_bounded(command, log_file, options.seconds, is_done, variables)
        log = without_colours(log_file.read_text())
        if unknown := UNKNOWN.search(log):
            raise SystemExit(f"Sample Factory has no environment {unknown[1]}: name another --env")
        found = returns.read() if returns else []
        return result_of(self.title, log, reports_of(log), found, options.to_return, ran)

    def settings_in(self, folder: Path) -> dict[str, Any]:
        found = json.loads((folder / "config.json").read_text())
        for name in ("train_dir", "command_line", "cli_args"):  # they hold the temporary folder, which is gone
            del found[name]
        return found

    # Learning

    def settings(self, order: Order) -> dict[str, Any]:
        return {"env": order.task.peers[self.name].env, "device": order.device, "episodes": order.episodes}

    def learn(self, order: Order, folder: Path) -> Outcome:
        kind, peer = kind_of(order.task.env), order.task.peers[self.name]
        shared = [f"--train_dir={folder}", "--experiment=run"]
        train = [*self._command("train", kind, peer.env, order.device), *shared, f"--seed={order.seed}"]
        train += [f"--train_for_env_steps={order.frames}", f"--stats_avg={EPISODES}"]
        train += [f"--experiment_summaries_interval={LOOK_EVERY_S}", f"--flush_summaries_interval={LOOK_EVERY_S}"]
        log = folder / "train.log"
        # Where one of its processes fails, the others wait for ever.
        ran = run_to_end(train, log, progress=partial(_frames_so_far, log))
        raw = Returns(folder / "run" / ".summary" / "0", *RETURNS[kind]).read()
        returns = [each._replace(mean_return=each.mean_return / peer.return_scale) for each in raw]
        scores: dict[str, float | None] = {"stochastic": None, "deterministic": None}
        for score in scores if kind != "atari" else ():
            play = [*self._command("enjoy", kind, peer.env, order.device), *shared, "--no_render"]
            play += [f"--max_num_episodes={order.episodes}", f"--eval_deterministic={score == 'deterministic'}"]
            play += [f"--seed={EVALUATION_SEED + order.seed}"]
            run_to_end(play, folder / f"{score}.log", good=(0, 1), variables=_LOADS)
            scores[score] = _played(folder / f"{score}.log") / peer.return_scale
        return Outcome.of(order, _frames(log), ran, returns, scores)


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


def _frames_so_far(log_file: Path) -> int:
    latest = b"\n".join(text_files.last_lines(log_file, _LATEST)).decode(errors="replace")
    reports = reports_of(without_colours(latest))
    return reports[-1].frames if reports else 0


def _frames(log_file: Path) -> int:
    """The last line of the log has them: "Collected {0: 6144}"."""
    found = re.findall(r"Collected (\{.*?\})", without_colours(log_file.read_text()))
    if not found:
        raise RunError("its log does not say how many frames it collected")
    return sum(json.loads(re.sub(r"(\d+):", r'"\1":', found[-1])).values())


def _played(log_file: Path) -> float:
    last = without_colours(last_line(log_file))
    played = PLAYED.fullmatch(last)
    if not played:
        raise RunError(f"{last} ({log_file.name})")
    return float(played[1])
