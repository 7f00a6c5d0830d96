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

import ale_py
import gymnasium as gym
from peers import virtual_envs
from peers.options import Options
from peers.trainer import Report, Result, ReturnReport, Trainer, result_of
from process_session import run_bounded

PACKAGE = "stable-baselines3==2.9.2"
TITLE = "Stable-Baselines3 2.9.2"
PROGRAM = Path(__file__).with_name("train_with_sb3.py")

_RELU_256 = {
    "log_std_init": -2,
    "ortho_init": False,
    "activation_fn": "ReLU",
    "net_arch": {"pi": [256, 256], "vf": [256, 256]},
}

ATARI: dict[str, Any] = {
    "n_envs": 8,
    "n_timesteps": 10_000_000,
    "policy": "CnnPolicy",
    "frame_stack": 4,
    "torch_threads": None,  # as many as there are cores
    "ppo": {
        "n_steps": 128, "n_epochs": 4, "batch_size": 256, "learning_rate": "lin_2.5e-4", "clip_range": "lin_0.1",
        "vf_coef": 0.5, "ent_coef": 0.01,
    },
}  # fmt: skip

MUJOCO: dict[str, Any] = {
    "n_envs": 1,
    "n_timesteps": 1_000_000,
    "policy": "MlpPolicy",
    "normalize": True,
    "torch_threads": 1,  # not of the zoo: such small networks are slower with more
}

MUJOCO_PPO: dict[str, dict[str, Any]] = {
    "Ant": {},
    "HalfCheetah": {
        "batch_size": 64, "n_steps": 512, "gamma": 0.98, "learning_rate": 2.0633e-05, "ent_coef": 0.000401762,
        "clip_range": 0.1, "n_epochs": 20, "gae_lambda": 0.92, "max_grad_norm": 0.8, "vf_coef": 0.58096,
        "policy_kwargs": _RELU_256,
    },
    "Hopper": {
        "batch_size": 32, "n_steps": 512, "gamma": 0.999, "learning_rate": 9.80828e-05, "ent_coef": 0.00229519,
        "clip_range": 0.2, "n_epochs": 5, "gae_lambda": 0.99, "max_grad_norm": 0.7, "vf_coef": 0.835671,
        "policy_kwargs": _RELU_256,
    },
    "Walker2d": {
        "batch_size": 32, "n_steps": 512, "gamma": 0.99, "learning_rate": 5.05041e-05, "ent_coef": 0.000585045,
        "clip_range": 0.1, "n_epochs": 20, "gae_lambda": 0.95, "max_grad_norm": 1, "vf_coef": 0.871923,
    },
}  # fmt: skip
"""By the task, published for v4."""


def settings_for(env: str) -> dict[str, Any] | None:
    """None for an environment that it is not run on here."""
    task = env.partition("-")[0]
    if env.startswith("atari_"):
        game = "".join(part.capitalize() for part in env.split("_")[1:])
        env_id = f"{game}NoFrameskip-v4"
        gym.register_envs(ale_py)
        return {"env_id": env_id, "kind": "atari", **ATARI} if env_id in gym.registry else None
    if task not in MUJOCO_PPO:
        return None
    return {"env_id": env, "kind": "mujoco", **MUJOCO, "ppo": MUJOCO_PPO[task]}


def refusal(env: str) -> str | None:
    if settings_for(env) is not None:
        return None
    return (
        f"Stable-Baselines3 is run on atari_* and {', '.join(MUJOCO_PPO)}, for which its zoo has settings, not on {env}"
    )


def install(options: Options) -> Path:
    packages = [PACKAGE, f"gymnasium=={version('gymnasium')}"]
    if options.kind == "atari":
        packages += [f"ale-py=={version('ale-py')}", "opencv-python-headless"]
    else:
        packages.append(f"mujoco=={version('mujoco')}")
    return virtual_envs.install(options.peers_dir / PACKAGE.replace("==", "-"), packages)


def run(options: Options, python: Path, train_dir: Path, experiment: str) -> Result:
    folder = train_dir / experiment
    folder.mkdir()
    task = {**(settings_for(options.env) or {}), "device": options.device, "to_return": options.to_return}
    (folder / "settings.json").write_text(json.dumps(task))
    log_file = train_dir / f"{experiment}.log"
    ran = run_bounded([str(python), str(PROGRAM), json.dumps(task)], log_file, options.seconds)
    log = log_file.read_text()
    reports, returns = read(log, options.frameskip)
    return result_of(TITLE, log, reports, returns, options.to_return, ran)


def read(log: str, frameskip: int) -> tuple[list[Report], list[ReturnReport]]:
    """What it says of its progress, and of its returns, in lines of JSON between others."""
    reports, returns = [], []
    for said in (json.loads(line) for line in log.splitlines() if line.startswith('{"at"')):
        frames = frameskip * said["steps"]
        if said["are_trained_on"]:
            reports.append(Report(said["at"], frames))
        if said["mean_return"] is not None:
            returns.append(ReturnReport(said["at"], frames, said["mean_return"]))
    return reports, returns


def settings(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "settings.json").read_text())


SB3 = Trainer(title=TITLE, refusal=refusal, install=install, run=run, settings=settings)
