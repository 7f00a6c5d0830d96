"""This project, at one of its commits: `sf-train` with the defaults for the environment, then `sf-eval`, twice.

Frames and returns in training are those of the records in metrics.jsonl, which a run writes each LOOK_EVERY_S here, and
of summary.json at its end.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learning.results import OWN
from learning.tasks import ENVIRONMENTS, Task
from learning.trainers.trainer import (
    EPISODES_OF_A_MEAN,
    EVALUATION_SEED,
    LOOK_EVERY_S,
    Order,
    Outcome,
    RunError,
    require_frames,
    run_to_end,
)
from learning.trainers.trees import Tree
from peers import own, virtual_envs
from peers.trainer import ReturnReport

from sf.storage.run_records import read_records
from sf.tools.commands import cli

SF_EVAL = re.compile(r'^sf-eval = "([\w.]+):(\w+)"$', re.MULTILINE)
"""In pyproject.toml: the module and function of the command, which are others in older commits."""

PLAYERS = 2  # processes of an evaluation: another number would play other episodes


@dataclass(frozen=True)
class Own:
    """A state of this project."""

    tree: Tree
    flags: str = ""
    """Of sf-train, in every task, as NAME=VALUE."""

    @property
    def name(self) -> str:
        return f"{OWN}{self.tree.commit} {self.flags}".strip()

    @property
    def title(self) -> str:
        return f"this project {self.tree.commit} {self.flags}".strip()

    @property
    def commit(self) -> str | None:
        return self.tree.commit

    def refusal(self, task: Task) -> str | None:
        if str(ENVIRONMENTS) not in sys.path:
            sys.path.append(str(ENVIRONMENTS))  # the environment is made here, to ask for what it shows
        return own.refusal(task.env)

    def prepare(self, task: Task) -> None:
        self.tree.make()

    def settings(self, order: Order) -> dict[str, Any]:
        return {
            "env": order.task.env,
            "device": order.device,
            "episodes": order.episodes,
            "flags": order.task.flags,
        } | ({"more_flags": self.flags} if self.flags else {})

    def versions(self) -> dict[str, str]:
        return virtual_envs.versions(Path(sys.executable))

    def run(self, order: Order, folder: Path) -> Outcome:
        self.tree.require_unchanged()
        train = [sys.executable, "-m", "sf", f"--env={order.task.env}", f"--seed={order.seed}"]
        train += [f"--device={order.device}", f"--train_for_env_frames={order.frames}"]
        train += [f"--summaries_every_sec={LOOK_EVERY_S}", f"--stats_avg={EPISODES_OF_A_MEAN}"]
        train += [
            f"--train_dir={folder}",
            "--experiment=run",
            *cli.arguments(order.task.flags),
            *_arguments(self.flags),
        ]
        ran = run_to_end(train, folder / "train.log", self.tree.folder)
        frames, returns = _returns(folder / "run")
        require_frames(frames, order)
        scores = {}
        for kind in ("stochastic", "deterministic"):
            played = folder / f"{kind}.json"
            play = [sys.executable, "-c", self._sf_eval(), str(folder / "run"), f"--episodes={order.episodes}"]
            play += [f"--deterministic={str(kind == 'deterministic').lower()}", f"--num_workers={PLAYERS}"]
            play += [f"--seed={EVALUATION_SEED + order.seed}", f"--json={played}"]
            run_to_end(play, folder / f"{kind}.log", self.tree.folder)
            scores[kind] = json.loads(played.read_text())["policies"][0]["statistics"]["return"]["mean"]
        return Outcome.of(order, frames, ran, returns, scores)

    def _sf_eval(self) -> str:
        found = SF_EVAL.search((self.tree.folder / "pyproject.toml").read_text())
        if not found:
            raise RunError(f"{self.tree.commit} has no sf-eval")
        return f"from {found[1]} import {found[2]}; {found[2]}()"


def _arguments(flags: str) -> list[str]:
    """ "optimizer=muon encoder_mlp_layers=128 64" as sf-train takes them."""
    words = []
    for word in shlex.split(flags):
        name, is_set, value = word.partition("=")
        words += [f"--{name}", value] if is_set else [word]
    return words


def _returns(folder: Path) -> tuple[int, list[ReturnReport]]:
    """The frames that were trained on, and the means over enough episodes."""
    path = folder / "metrics.jsonl"
    records, _ = read_records(path)
    if not records:
        raise RunError("it wrote no record")
    # A record has the seconds of the run, which begin after the launch. The file was last written with its last record.
    started = path.stat().st_mtime - records[-1]["seconds"]
    summary = json.loads((folder / "summary.json").read_text())
    returns = [
        ReturnReport(started + record["seconds"], int(record["env_frames"]), record["mean_return"])
        for record in [*records, summary]
        if record.get("episodes_in_mean", 0) >= EPISODES_OF_A_MEAN and record.get("mean_return") is not None
    ]
    return summary["env_frames"], returns
