"""Plays episodes with a model that `train_with_sb3.py` saved, and prints the mean returns as a line of JSON.

It runs in the virtual environment of the peer, with two arguments: the settings of the training, and what to play, both
as JSON. Each of the environments plays its share of the episodes, so that short ones count no more than long ones.
Returns are those of Monitor, below all wrappers: whole games, before clipping. Statistics of observations are those of
the training, and stay as they are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean

import torch
from gsde import ExploringAsTrained
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from train_with_sb3 import MODEL, STATISTICS, algorithm, make_env

ENVS = 4


def main() -> None:
    task, play = (json.loads(word) for word in sys.argv[1:3])
    if task["torch_threads"] is not None:
        torch.set_num_threads(task["torch_threads"])
    folder = Path(task["save_to"])
    model = ExploringAsTrained(algorithm(task).load(folder / MODEL, device=task["device"]), ENVS)
    means = {}
    for kind in ("stochastic", "deterministic"):
        set_random_seed(play["seed"])
        env = frozen(make_env({**task, "n_envs": ENVS}, play["seed"]), folder / STATISTICS)
        returns, _ = evaluate_policy(
            model,
            env,
            n_eval_episodes=play["episodes"],
            deterministic=kind == "deterministic",
            return_episode_rewards=True,
        )
        env.close()
        means[kind] = fmean(map(float, returns))
    print(json.dumps({"mean_returns": means}))


def frozen(env: VecEnv, statistics: Path) -> VecEnv:
    if not statistics.exists():
        return env
    normalised = VecNormalize.load(str(statistics), env)
    normalised.training = normalised.norm_reward = False
    return normalised


if __name__ == "__main__":
    main()
