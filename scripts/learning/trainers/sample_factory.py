"""Sample Factory 2.1.1, with its own settings for the environment, as its examples start it.

Evaluation is by its `enjoy` programs: one environment, `--max_num_episodes`, and `--eval_deterministic`. They do not
seed the environment, which so has a seed of the system. On Atari they report clipped rewards of one life. So there the
score is that of training: the mean of the last 100 whole games, for which no deterministic one exists.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from learning.tasks import Task
from learning.trainers.trainer import (
    EPISODES_OF_A_MEAN,
    EVALUATION_SEED,
    LOOK_EVERY_S,
    Order,
    Outcome,
    RunError,
    last_line,
    require_frames,
    run_to_end,
)
from peers import sample_factory, virtual_envs
from peers.options import kind_of
from peers.sample_factory import RETURNS, Returns, device_there, program, reports_of, without_colours

PLAYED = re.compile(r"\(0, (-?[\d.]+(?:e[+-]?\d+)?)\)")
"""The last line of an evaluation: 0 for success, and the mean return. Python ends with status 1 after it."""

_TAIL = 20_000  # bytes of a log, with several reports
_LOADS = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
"""Since torch 2.6 its checkpoints are refused, which hold numbers of numpy. These were made just before."""


@dataclass(frozen=True)
class SampleFactory:
    """In its virtual environment."""

    peers_dir: Path
    name: str = "sample_factory"
    title: str = sample_factory.TITLE
    commit: str | None = None

    def refusal(self, task: Task) -> str | None:
        return None if self.name in task.peers else f"{self.title} is not run on {task.name}"

    def prepare(self, task: Task) -> None:
        sample_factory.install(kind_of(task.env), self.peers_dir)

    def settings(self, order: Order) -> dict[str, Any]:
        return {"env": order.task.peers[self.name].env, "device": order.device, "episodes": order.episodes}

    def versions(self) -> dict[str, str]:
        return virtual_envs.versions(self._python)

    @property
    def _python(self) -> Path:
        return virtual_envs.python_of(sample_factory.PACKAGE, self.peers_dir)

    def run(self, order: Order, folder: Path) -> Outcome:
        kind, peer = kind_of(order.task.env), order.task.peers[self.name]
        shared = [f"--env={peer.env}", f"--device={device_there(order.device)}", f"--train_dir={folder}"]
        shared.append("--experiment=run")
        train = [*program(self._python, "train", kind), *shared, f"--seed={order.seed}"]
        train += [f"--train_for_env_steps={order.frames}", f"--stats_avg={EPISODES_OF_A_MEAN}"]
        train += [f"--experiment_summaries_interval={LOOK_EVERY_S}", f"--flush_summaries_interval={LOOK_EVERY_S}"]
        # Where one of its processes fails, the others wait for ever.
        ran = run_to_end(train, folder / "train.log", progress=partial(_frames_so_far, folder / "train.log"))
        frames = _frames(folder / "train.log")
        require_frames(frames, order)
        raw = Returns(folder / "run" / ".summary" / "0", *RETURNS[kind]).read()
        returns = [each._replace(mean_return=each.mean_return / peer.return_scale) for each in raw]
        scores: dict[str, float | None] = {"stochastic": None, "deterministic": None}
        for score in scores if kind != "atari" else ():
            play = [
                *program(self._python, "enjoy", kind),
                *shared,
                "--no_render",
                f"--max_num_episodes={order.episodes}",
            ]
            play += [f"--eval_deterministic={score == 'deterministic'}", f"--seed={EVALUATION_SEED + order.seed}"]
            run_to_end(play, folder / f"{score}.log", good=(0, 1), variables=_LOADS)
            scores[score] = _played(folder / f"{score}.log") / peer.return_scale
        return Outcome.of(order, frames, ran, returns, scores)


def _frames_so_far(log_file: Path) -> int:
    with log_file.open("rb") as log:
        begin = max(0, log.seek(0, os.SEEK_END) - _TAIL)
        log.seek(begin)
        if begin > 0:
            log.readline()  # the rest of a line, which may begin within a colour
        reports = reports_of(without_colours(log.read().decode(errors="replace")))
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
