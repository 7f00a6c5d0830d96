"""Trains with PPO of Stable-Baselines3, or its RecurrentPPO, until it is interrupted, or reaches the return.

It reports in lines of JSON. `sb3.py` runs it in the virtual environment of the peer, with one argument: the settings,
as JSON. It imports nothing of this project, but it finds the environments of the bench of learning. A learning rate or
clip range "lin_X" falls from X to 0 over n_timesteps, as in the zoo.

With "save_to", a folder, it goes on after the return, to n_timesteps, and saves the model and the statistics that
observations are normalised with.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack, VecNormalize
from torch import nn

with suppress(ImportError):  # it is installed for Atari only
    import ale_py  # noqa: F401  it registers the games, here and in the processes of SubprocVecEnv

EPISODES = 100
ENVIRONMENTS = Path(__file__).resolve().parent.parent / "learning" / "environments"
MODEL, STATISTICS = "model.zip", "statistics.pkl"  # where it saves them


def main() -> None:
    task = json.loads(sys.argv[1])
    save_to = task.get("save_to")
    reports = Reports(task["to_return"], ends_at_return=save_to is None)
    signal.signal(signal.SIGINT, lambda *_: reports.interrupt())
    if task["torch_threads"] is not None:
        torch.set_num_threads(task["torch_threads"])
    seed = task.get("seed")
    env = make_env(task, seed or 0)
    if task.get("normalize", False):
        env = VecNormalize(env, gamma=task["ppo"].get("gamma", 0.99))
    model = algorithm(task)(task["policy"], env, device=task["device"], seed=seed, **ppo_arguments(task["ppo"]))
    model.learn(task["n_timesteps"], callback=reports)
    if save_to is not None:
        model.save(Path(save_to) / MODEL)
        if isinstance(env, VecNormalize):
            env.save(str(Path(save_to) / STATISTICS))
    env.close()


def make_env(task: dict[str, Any], seed: int) -> VecEnv:
    """Environment i has the seed `seed` + i."""
    if task["kind"] == "atari":
        # In processes, since all games in one would use a single core.
        env = make_atari_env(task["env_id"], n_envs=task["n_envs"], seed=seed, vec_env_cls=SubprocVecEnv)
        return VecFrameStack(env, n_stack=task["frame_stack"])
    if task["kind"] == "minigrid":
        import_module("minigrid")  # it registers its environments
    env = named(task["env_id"]) if ":" in task["env_id"] else task["env_id"]
    wrapper = named(task["wrapper"]) if "wrapper" in task else None
    return make_vec_env(env, n_envs=task["n_envs"], seed=seed, wrapper_class=wrapper)


def named(place: str) -> Any:
    """The class of "module:class". Modules in the bench's folder of environments are found, too."""
    module, _, name = place.partition(":")
    if str(ENVIRONMENTS) not in sys.path:
        sys.path.append(str(ENVIRONMENTS))
    return getattr(import_module(module), name)


def algorithm(task: dict[str, Any]) -> type[PPO] | type[RecurrentPPO]:
    return RecurrentPPO if task.get("algorithm") == "RecurrentPPO" else PPO


def ppo_arguments(published: dict[str, Any]) -> dict[str, Any]:
    arguments = {name: schedule(value) for name, value in published.items()}
    policy = arguments.get("policy_kwargs", {})
    if "activation_fn" in policy:
        arguments["policy_kwargs"] = {**policy, "activation_fn": getattr(nn, policy["activation_fn"])}
    return arguments


def schedule(value: Any) -> Any:
    """Of "lin_X", the function that Stable-Baselines3 calls with the share of the steps that is left, from 1 to 0."""
    if not (isinstance(value, str) and value.startswith("lin_")):
        return value
    initial = float(value.removeprefix("lin_"))
    linear: Callable[[float], float] = lambda remaining: initial * remaining  # noqa: E731  it is returned
    return linear


class Reports(BaseCallback):
    """Prints the lines, and ends the training."""

    def __init__(self, to_return: float | None, ends_at_return: bool) -> None:
        super().__init__()
        self._to_return = to_return
        self._ends_at_return = ends_at_return
        self._returns: deque[float] = deque(maxlen=EPISODES)
        self._is_interrupted = False

    def interrupt(self) -> None:
        self._is_interrupted = True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps > 0:
            self._report(are_trained_on=True)

    def _on_step(self) -> bool:
        """Whether to go on."""
        episodes = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        self._returns.extend(episodes)
        mean = self._mean_return()
        if episodes and self._to_return is not None and mean is not None and mean >= self._to_return:
            self._report(are_trained_on=False)
            if self._ends_at_return:
                return False
            self._to_return = None  # it is said once
        return not self._is_interrupted

    def _on_training_end(self) -> None:
        if not self._ends_at_return:
            self._report(are_trained_on=True)

    def _mean_return(self) -> float | None:
        """None before there are EPISODES episodes."""
        return sum(self._returns) / EPISODES if len(self._returns) == EPISODES else None

    def _report(self, are_trained_on: bool) -> None:
        line = {"at": time.time(), "steps": self.num_timesteps, "are_trained_on": are_trained_on}
        print(json.dumps({**line, "mean_return": self._mean_return()}), flush=True)


if __name__ == "__main__":
    main()
