"""Stable-Baselines3's PPO, with the settings that its zoo (rl-baselines3-zoo, hyperparams/ppo.yml) publishes.

`train_with_sb3.py` runs in the peer's virtual environment and prints lines of JSON; `evaluate_with_sb3.py` plays with
what it has saved. A rate that falls in the zoo over its steps falls over those of the bench of learning there.

Rate: a line before each rollout, with the decisions that were trained on, from the first update on.
Return: a line when an episode ends that reaches it, and before each rollout. Monitor counts the returns of episodes
below all wrappers, so these are whole games, before clipping.

sb3_zoo.yaml has the settings.
"""

from __future__ import annotations

import json
import math
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ale_py
import gymnasium as gym
import yaml
from learning.tasks import Task
from peers import virtual_envs
from peers.options import Kind, Options, kind_of
from peers.trainer import EVALUATION_SEED, Order, Outcome, Peer, Result, reports_in_json, result_of, run_to_end
from process_session import run_bounded

PACKAGE = "stable-baselines3==2.9.2"
RECURRENT = "sb3-contrib==2.9.2"
PROGRAM = Path(__file__).with_name("train_with_sb3.py")
EVALUATE = PROGRAM.with_name("evaluate_with_sb3.py")

Settings = dict[str, Any]

ZOO_FILE = PROGRAM.with_name("sb3_zoo.yaml")
ZOO: dict[str, Settings] = yaml.safe_load(ZOO_FILE.read_text())
"""Keys are tasks: the name of the environment without its version, or "atari" for all of Atari."""


def settings_for(env: str) -> Settings | None:
    """None for an environment that it is not run on here."""
    if env.startswith("atari_"):
        game = "".join(part.capitalize() for part in env.split("_")[1:])
        env_id = f"{game}NoFrameskip-v4"
        gym.register_envs(ale_py)
        return {"env_id": env_id, "kind": "atari", **ZOO["atari"]} if env_id in gym.registry else None
    settings = ZOO.get(re.sub(r"-v\d+$", "", env))
    return settings and {"env_id": env, "kind": kind_of(env), **settings}


class StableBaselines3(Peer):
    """It gets the settings of its zoo, in both comparisons."""

    package = PACKAGE
    name = "stable_baselines3"
    title = "Stable-Baselines3 2.9.2"

    def refusal(self, env: str) -> str | None:
        if settings_for(env) is not None:
            return None
        tasks = ", ".join(task for task in ZOO if task != "atari")
        return f"Stable-Baselines3 is run on atari_* and {tasks}, not on {env}: {ZOO_FILE.name} has settings for these"

    def install(self, kind: Kind) -> None:
        packages = [PACKAGE, RECURRENT, f"gymnasium=={version('gymnasium')}"]
        if kind == "atari":
            packages += [f"ale-py=={version('ale-py')}", "opencv-python-headless"]
        elif kind == "mujoco":
            packages += [f"mujoco=={version('mujoco')}", "imageio", "packaging"]  # gymnasium imports all three
        elif kind == "box2d":
            packages += ["box2d", "pygame-ce"]
        elif kind == "minigrid":
            packages.append(f"minigrid=={version('minigrid')}")
        virtual_envs.install(self.folder, packages)

    # Speed

    def measure_speed(self, options: Options, train_dir: Path, experiment: str) -> Result:
        folder = train_dir / experiment
        folder.mkdir()
        task = {**(settings_for(options.env) or {}), "device": options.device, "to_return": options.to_return}
        (folder / "settings.json").write_text(json.dumps(task))
        log_file = train_dir / f"{experiment}.log"
        ran = run_bounded([str(self.python), str(PROGRAM), json.dumps(task)], log_file, options.seconds)
        log = log_file.read_text()
        reports, returns = reports_in_json(log, options.frameskip)
        return result_of(self.title, log, reports, returns, options.to_return, ran)

    # Learning

    def refusal_of(self, task: Task) -> str | None:
        return super().refusal_of(task) or self.refusal(task.peers[self.name].env)

    def settings(self, order: Order) -> dict[str, Any]:
        settings = dict(settings_for(order.task.peers[self.name].env) or {})
        frameskip = 4 if settings["kind"] == "atari" else 1
        steps = math.ceil(order.frames / frameskip)
        more = {"n_timesteps": steps, "frameskip": frameskip, "device": order.device, "episodes": order.episodes}
        return settings | more

    def learn(self, order: Order, folder: Path) -> Outcome:
        settings = self.settings(order)
        task = {**settings, "seed": order.seed, "to_return": order.task.at_least, "save_to": str(folder)}
        log_file = folder / "train.log"
        ran = run_to_end([str(self.python), str(PROGRAM), json.dumps(task)], log_file)
        reports, returns = reports_in_json(log_file.read_text(), settings["frameskip"])
        frames = max((report.frames for report in reports), default=0)
        play = {"episodes": order.episodes, "seed": EVALUATION_SEED + order.seed}
        played = folder / "play.log"
        run_to_end([str(self.python), str(EVALUATE), json.dumps(task), json.dumps(play)], played)
        lines = played.read_text().splitlines()
        means = next(json.loads(line)["mean_returns"] for line in reversed(lines) if line.startswith('{"mean_returns"'))
        return Outcome.of(order, frames, ran, returns, means)
