"""This project: the `sf` that this interpreter imports, or, for what it learns, one of its commits.

Rate: `steady_env_frames_per_second` of summary.json. For the whole run, the frames of the last record in metrics.jsonl
over the time from the launch to that record, which is the time of the file.
Return: a run of bench_peers ends by --stop_at_return with the record that reached it, one of those made each 5 s. A run
of bench_learning makes a record each LOOK_EVERY_S.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from learning.results import OWN
from learning.tasks import ENVIRONMENTS, Task
from peers import virtual_envs
from peers.options import Kind, Options
from peers.trainer import (
    EPISODES,
    EVALUATION_SEED,
    LOOK_EVERY_S,
    Order,
    Outcome,
    Result,
    ReturnReport,
    RunError,
    run_to_end,
)
from peers.trees import Tree
from process_session import Ran, run_bounded

from sf import envs
from sf.storage.run_records import read_records
from sf.tools.commands import cli

START_UP_S = 60.0  # what a run may take beyond --seconds before it must stop
SF_EVAL = re.compile(r'^sf-eval = "([\w.]+):(\w+)"$', re.MULTILINE)
"""Finds the module and function of the command in pyproject.toml: they are others in older commits."""

PLAYERS = 2  # processes of an evaluation: another number would play other episodes


def refusal(env: str) -> str | None:
    """As sf-train would say it."""
    try:
        envs.describe(env, envs.EnvOptions())
    except ValueError as error:
        return str(error)
    return None


class ThisProject:
    """This project in the comparison of speed."""

    title = "this project"
    shown_settings: Sequence[str] = ()

    def refusal(self, env: str) -> str | None:
        return refusal(env)

    def install(self, kind: Kind) -> None:
        """It is here."""

    def versions(self) -> dict[str, str]:
        return virtual_envs.versions(Path(sys.executable))

    def settings_in(self, folder: Path) -> dict[str, Any]:
        found = yaml.safe_load((folder / "config.yaml").read_text())
        return {name: value for name, value in found.items() if name != "train_dir"}  # a temporary folder, now gone

    def measure_speed(self, options: Options, train_dir: Path, experiment: str) -> Result:
        command = [sys.executable, "-m", "sf", f"--env={options.env}", f"--device={options.device}"]
        command += [f"--train_dir={train_dir}", f"--experiment={experiment}", *options.shared_flags]
        command += [f"--train_for_seconds={options.seconds}", f"--train_for_env_steps={10**10}"]  # presets end sooner
        if options.to_return is not None:
            command += [f"--stop_at_return={options.to_return}", f"--stats_avg={EPISODES}"]
        command += shlex.split(options.own_flags)
        log_file = train_dir / f"{experiment}.log"
        ran = run_bounded(command, log_file, options.seconds + START_UP_S)
        folder = train_dir / experiment
        if ran.status or not (folder / "summary.json").exists():
            raise SystemExit(f"{shlex.join(command)} failed. Its log ends:\n{log_file.read_text()[-2000:]}")
        return result_in(folder, ran, has_goal=options.to_return is not None)


def result_in(folder: Path, ran: Ran, has_goal: bool) -> Result:
    summary = json.loads((folder / "summary.json").read_text())
    records = folder / "metrics.jsonl"
    last = json.loads(records.read_text().splitlines()[-1])
    seconds = records.stat().st_mtime - ran.started
    has_reached = summary["stopped_by"] == "stop_at_return"
    return Result(
        summary["steady_env_frames_per_second"] or None,  # 0: it had no time for two reports
        last["env_frames"],
        seconds,
        ran.left_behind,
        last["mean_return"] if has_goal and last.get("episodes_in_mean", 0) >= EPISODES else None,
        seconds if has_reached else None,
        last["env_frames"] if has_reached else None,
    )


@dataclass(frozen=True)
class Own:
    """A state of this project in the comparison of learning: `sf-train` with the defaults, then `sf-eval`, twice."""

    tree: Tree
    flags: str = ""  # of sf-train, added in every task, as NAME=VALUE

    @property
    def name(self) -> str:
        return f"{OWN}{self.tree.commit} {self.flags}".strip()

    @property
    def title(self) -> str:
        return f"this project {self.tree.commit} {self.flags}".strip()

    @property
    def commit(self) -> str | None:
        return self.tree.commit

    def refusal_of(self, task: Task) -> str | None:
        if str(ENVIRONMENTS) not in sys.path:
            sys.path.append(str(ENVIRONMENTS))  # the environment is made here, to ask for what it shows
        return refusal(task.env)

    def prepare(self, task: Task) -> None:
        self.tree.make()

    def settings(self, order: Order) -> dict[str, Any]:
        settings = {"env": order.task.env, "device": order.device, "episodes": order.episodes}
        return settings | {"flags": order.task.flags} | ({"more_flags": self.flags} if self.flags else {})

    def versions(self) -> dict[str, str]:
        return virtual_envs.versions(Path(sys.executable))

    def learn(self, order: Order, folder: Path) -> Outcome:
        self.tree.require_unchanged()
        train = [sys.executable, "-m", "sf", f"--env={order.task.env}", f"--seed={order.seed}"]
        train += [f"--device={order.device}", f"--train_for_env_frames={order.frames}"]
        train += [f"--summaries_every_sec={LOOK_EVERY_S}", f"--stats_avg={EPISODES}"]
        train += [f"--train_dir={folder}", "--experiment=run", *cli.arguments(order.task.flags)]
        train += _arguments(self.flags)
        ran = run_to_end(train, folder / "train.log", self.tree.folder)
        frames, returns = _returns(folder / "run")
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
        if record.get("episodes_in_mean", 0) >= EPISODES and record.get("mean_return") is not None
    ]
    return summary["env_frames"], returns
