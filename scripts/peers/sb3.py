"""Stable-Baselines3's PPO, with the settings that its zoo (rl-baselines3-zoo, hyperparams/ppo.yml) publishes.

`train_with_sb3.py` runs in the peer's virtual environment and prints lines of JSON; `evaluate_with_sb3.py` plays with
what it has saved. A rate that falls in the zoo over its steps falls over those of the bench of learning there.

Rate: a line before each rollout, with the decisions that were trained on, from the first update on.
Return: a line when an episode ends that reaches it, and before each rollout. Monitor counts the returns of episodes
below all wrappers, so these are whole games, before clipping.

"lin_X" is a rate that falls from X to 0 over n_timesteps. The tasks of this project's own bench are in no zoo:
they are trained with the arguments that PPO and RecurrentPPO have by themselves.
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

_RELU_256 = {
    "log_std_init": -2,
    "ortho_init": False,
    "activation_fn": "ReLU",
    "net_arch": {"pi": [256, 256], "vf": [256, 256]},
}

ATARI: Settings = {
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

VECTORS: Settings = {
    "policy": "MlpPolicy",
    "torch_threads": 1,  # not of the zoo: such small networks are slower with more
}

MUJOCO: Settings = {**VECTORS, "n_envs": 1, "n_timesteps": 1_000_000, "normalize": True}

MUJOCO_PPO: dict[str, Settings] = {
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

OTHERS: dict[str, Settings] = {
    "Acrobot": {
        "n_envs": 16, "n_timesteps": 1_000_000, "normalize": True,
        "ppo": {"n_steps": 256, "gae_lambda": 0.94, "gamma": 0.99, "n_epochs": 4, "ent_coef": 0.0},
    },
    "CartPole": {
        "n_envs": 8, "n_timesteps": 100_000,
        "ppo": {
            "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0,
            "learning_rate": "lin_0.001", "clip_range": "lin_0.2",
        },
    },
    "LunarLander": {
        "n_envs": 16, "n_timesteps": 1_000_000,
        "ppo": {
            "n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4, "ent_coef": 0.01,
        },
    },
    "MiniGrid-DoorKey-5x5": {
        "n_envs": 8, "n_timesteps": 100_000, "normalize": True, "wrapper": "minigrid.wrappers:FlatObsWrapper",
        "ppo": {
            "n_steps": 128, "batch_size": 64, "gae_lambda": 0.95, "gamma": 0.99, "n_epochs": 10, "ent_coef": 0.0,
            "learning_rate": 2.5e-4, "clip_range": 0.2,
        },
    },
    "MountainCarContinuous": {
        "n_envs": 1, "n_timesteps": 20_000, "normalize": True,
        "ppo": {
            "batch_size": 256, "n_steps": 8, "gamma": 0.9999, "learning_rate": 7.77e-05, "ent_coef": 0.00429,
            "clip_range": 0.1, "n_epochs": 10, "gae_lambda": 0.9, "max_grad_norm": 5, "vf_coef": 0.19, "use_sde": True,
            "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False},
        },
    },
    "Pendulum": {
        "n_envs": 4, "n_timesteps": 100_000,
        "ppo": {
            "n_steps": 1024, "gae_lambda": 0.95, "gamma": 0.9, "n_epochs": 10, "ent_coef": 0.0, "learning_rate": 0.001,
            "clip_range": 0.2, "use_sde": True, "sde_sample_freq": 4,
        },
    },
}  # fmt: skip
"""By the task. LunarLander's are published for v2, before Gymnasium 1.0."""

OWN: dict[str, Settings] = {
    "reach_camera:Reach": {"policy": "CnnPolicy", "n_envs": 8, "torch_threads": None, "ppo": {}},
    "t_maze:TMaze": {**VECTORS, "algorithm": "RecurrentPPO", "policy": "MlpLstmPolicy", "n_envs": 8, "ppo": {}},
}
"""By module and class in scripts/learning/environments."""


def settings_for(env: str) -> Settings | None:
    """None for an environment that it is not run on here."""
    if env in OWN:
        return {"env_id": env, "kind": "gymnasium", **OWN[env]}
    task = re.sub(r"-v\d+$", "", env)
    if env.startswith("atari_"):
        game = "".join(part.capitalize() for part in env.split("_")[1:])
        env_id = f"{game}NoFrameskip-v4"
        gym.register_envs(ale_py)
        return {"env_id": env_id, "kind": "atari", **ATARI} if env_id in gym.registry else None
    if task in MUJOCO_PPO:
        return {"env_id": env, "kind": "mujoco", **MUJOCO, "ppo": MUJOCO_PPO[task]}
    if task in OTHERS:
        return {"env_id": env, "kind": kind_of(env), **VECTORS, **OTHERS[task]}
    return None


class StableBaselines3(Peer):
    """It gets the settings of its zoo, in both comparisons."""

    package = PACKAGE
    name = "stable_baselines3"
    title = "Stable-Baselines3 2.9.2"

    def refusal(self, env: str) -> str | None:
        if settings_for(env) is not None:
            return None
        tasks = ", ".join([*MUJOCO_PPO, *OTHERS])
        zoo = f"atari_* and {tasks}, for which its zoo has settings"
        return f"Stable-Baselines3 is run on {zoo}, and on {', '.join(OWN)} of the bench of learning, not on {env}"

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
