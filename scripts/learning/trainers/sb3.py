"""Stable-Baselines3's PPO with the settings of its zoo. A rate that falls there over the zoo's steps falls over ours.

`peers/train_with_sb3.py` trains and saves, `peers/evaluate_with_sb3.py` plays. A task's name there is that of this
project: `peers/sb3.py` knows what the environment is called.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learning.tasks import Task
from learning.trainers.trainer import (
    EVALUATION_SEED,
    Order,
    Outcome,
    require_frames,
    run_to_end,
)
from peers import sb3, virtual_envs
from peers.options import kind_of
from peers.sb3 import settings_for
from peers.trainer import reports_in_json

EVALUATE = sb3.PROGRAM.with_name("evaluate_with_sb3.py")


@dataclass(frozen=True)
class StableBaselines3:
    """In its virtual environment."""

    peers_dir: Path
    name: str = "stable_baselines3"
    title: str = sb3.TITLE
    commit: str | None = None

    def refusal(self, task: Task) -> str | None:
        peer = task.peers.get(self.name)
        return f"{self.title} is not run on {task.name}" if peer is None else sb3.refusal(peer.env)

    def prepare(self, task: Task) -> None:
        sb3.install(kind_of(task.peers[self.name].env), self.peers_dir)

    def settings(self, order: Order) -> dict[str, Any]:
        settings = dict(settings_for(order.task.peers[self.name].env) or {})
        frameskip = 4 if settings["kind"] == "atari" else 1
        steps = math.ceil(order.frames / frameskip)
        return {
            **settings,
            "n_timesteps": steps,
            "frameskip": frameskip,
            "device": order.device,
            "episodes": order.episodes,
        }

    def versions(self) -> dict[str, str]:
        return virtual_envs.versions(self._python)

    @property
    def _python(self) -> Path:
        return virtual_envs.python_of(sb3.PACKAGE, self.peers_dir)

    def run(self, order: Order, folder: Path) -> Outcome:
        settings = self.settings(order)
        task = {**settings, "seed": order.seed, "to_return": order.task.at_least, "save_to": str(folder)}
        log_file = folder / "train.log"
        ran = run_to_end([str(self._python), str(sb3.PROGRAM), json.dumps(task)], log_file)
        reports, returns = reports_in_json(log_file.read_text(), settings["frameskip"])
        frames = max((report.frames for report in reports), default=0)
        require_frames(frames, order)
        play = {"episodes": order.episodes, "seed": EVALUATION_SEED + order.seed}
        played = folder / "play.log"
        run_to_end([str(self._python), str(EVALUATE), json.dumps(task), json.dumps(play)], played)
        lines = played.read_text().splitlines()
        means = next(json.loads(line)["mean_returns"] for line in reversed(lines) if line.startswith('{"mean_returns"'))
        return Outcome.of(order, frames, ran, returns, means)
