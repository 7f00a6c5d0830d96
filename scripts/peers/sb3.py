"""Stable-Baselines3's PPO, with the settings that its zoo (rl-baselines3-zoo, hyperparams/ppo.yml) publishes.

`train_with_sb3.py` runs in the peer's virtual environment and prints lines of JSON.

Rate: a line before each rollout, with the decisions that were trained on, from the first update on.
Return: a line when an episode ends that reaches it, and before each rollout. Monitor counts the returns of episodes
below all wrappers, so these are whole games, before clipping.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from peers import virtual_envs
from peers.options import Kind, Options
from peers.sb3_settings import MUJOCO_PPO, OTHERS, OWN, settings_for
from peers.trainer import Result, Trainer, reports_in_json, result_of
from process_session import run_bounded

PACKAGE = "stable-baselines3==2.9.2"
RECURRENT = "sb3-contrib==2.9.2"
TITLE = "Stable-Baselines3 2.9.2"
PROGRAM = Path(__file__).with_name("train_with_sb3.py")


def refusal(env: str) -> str | None:
    if settings_for(env) is not None:
        return None
    tasks = ", ".join([*MUJOCO_PPO, *OTHERS])
    zoo = f"atari_* and {tasks}, for which its zoo has settings"
    return f"Stable-Baselines3 is run on {zoo}, and on {', '.join(OWN)} of the bench of learning, not on {env}"


def install(kind: Kind, peers_dir: Path) -> Path:
    packages = [PACKAGE, RECURRENT, f"gymnasium=={version('gymnasium')}"]
    if kind == "atari":
        packages += [f"ale-py=={version('ale-py')}", "opencv-python-headless"]
    elif kind == "mujoco":
        packages += [f"mujoco=={version('mujoco')}", "imageio", "packaging"]  # gymnasium imports all three
    elif kind == "box2d":
        packages += ["box2d", "pygame-ce"]
    elif kind == "minigrid":
        packages.append(f"minigrid=={version('minigrid')}")
    return virtual_envs.install(virtual_envs.folder_of(PACKAGE, peers_dir), packages)


def python_in(peers_dir: Path) -> Path:
    """Once it is installed."""
    return virtual_envs.python_in(virtual_envs.folder_of(PACKAGE, peers_dir))


def run(options: Options, python: Path, train_dir: Path, experiment: str) -> Result:
    folder = train_dir / experiment
    folder.mkdir()
    task = {**(settings_for(options.env) or {}), "device": options.device, "to_return": options.to_return}
    (folder / "settings.json").write_text(json.dumps(task))
    log_file = train_dir / f"{experiment}.log"
    ran = run_bounded([str(python), str(PROGRAM), json.dumps(task)], log_file, options.seconds)
    log = log_file.read_text()
    reports, returns = reports_in_json(log, options.frameskip)
    return result_of(TITLE, log, reports, returns, options.to_return, ran)


def settings(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "settings.json").read_text())


SB3 = Trainer(title=TITLE, refusal=refusal, install=install, run=run, settings=settings)
