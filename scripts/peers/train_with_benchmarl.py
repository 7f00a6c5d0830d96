"""Trains with MAPPO or IPPO of BenchMARL 1.5.2 on an environment of MPE2, and evaluates what it has learned.

    python -m venv VENV
    VENV/bin/pip install benchmarl==1.5.2 mpe2 torch==2.13.0
    VENV/bin/python scripts/peers/train_with_benchmarl.py --algorithm mappo --task simple_spread --json mappo.json

It runs in a virtual environment of its own, and imports nothing of this project. The environments are those of
`sf-train --env mpe2.simple_spread_v3:parallel_env`, with the defaults of MPE2: 25 steps, discrete actions, and for
simple_spread three agents and a local_ratio of 0.5. BenchMARL's own defaults are 100 steps and continuous actions, and
its tasks import MPE from PettingZoo, where it no longer is. All else is as BenchMARL's YAML files have it, with one
exception: BenchMARL gives its ten copies of the environment one seed, so that all of them would begin each episode
alike. Here each copy has its own seed.

BenchMARL counts a step of all agents of an environment as one frame. `agent_steps` are frames times agents. The frames
of a run are rounded up to whole iterations, of 6,000 frames. Its models are one policy and one critic for each group of
agents (agents of one name, such as adversary_0), shared in the group. MAPPO's critics read the environment's state, the
observations of all agents.

A return is the sum over an episode of one agent's own reward, undiscounted, as the environment pays it. `mean_return`
is the mean over agents, `by_group` the mean over the agents of a group, and `benchmarl_return`, what BenchMARL reports,
the mean of `by_group` over groups. They are of the episodes that ended in the iteration. The evaluation plays other
episodes, with the most probable actions ("deterministic", what BenchMARL's own evaluations do) and with sampled ones
("stochastic").

Seconds are wall time since the program began, its imports included. `seconds_of_training` is the last of them before
the evaluation.
"""

from __future__ import annotations

import time

_STARTED = time.time()

import argparse  # noqa: E402
import importlib  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Callable, Mapping  # noqa: E402
from dataclasses import asdict  # noqa: E402
from importlib.metadata import version  # noqa: E402
from itertools import count  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
from benchmarl.algorithms import IppoConfig, MappoConfig  # noqa: E402
from benchmarl.environments.pettingzoo.common import PettingZooClass  # noqa: E402
from benchmarl.experiment import Callback, Experiment, ExperimentConfig  # noqa: E402
from benchmarl.models.mlp import MlpConfig  # noqa: E402
from torchrl.envs.libs.pettingzoo import PettingZooWrapper  # noqa: E402
from torchrl.envs.utils import ExplorationType, set_exploration_type  # noqa: E402

MODULES = {
    "simple_spread": "mpe2.simple_spread_v3",
    "simple_adversary": "mpe2.simple_adversary_v3",
    "simple_speaker_listener": "mpe2.simple_speaker_listener_v4",
}
MAX_CYCLES = 25  # MPE2's default
SEEDS_OF_A_RUN = 1000  # one for each copy of the environment
EVALUATION_SEED = 1_000_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithm", choices=("mappo", "ippo"), default="mappo")
    parser.add_argument("--task", choices=tuple(MODULES), default="simple_spread")
    parser.add_argument("--agent_steps", type=int, default=1_000_000, help="to train for: frames times agents")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=200, help="of each of the two evaluations")
    parser.add_argument("--json", type=Path, required=True, help="the file to write, again after each iteration")
    args = parser.parse_args()

    config = ExperimentConfig.get_from_yaml()
    config.prefer_continuous_actions = False
    config.evaluation = config.render = config.create_json = False
    config.loggers = []
    num_agents = len(_make(args.task).possible_agents)
    iterations = math.ceil(args.agent_steps / num_agents / config.on_policy_collected_frames_per_batch)
    config.max_n_frames = iterations * config.on_policy_collected_frames_per_batch
    algorithm = {"mappo": MappoConfig, "ippo": IppoConfig}[args.algorithm].get_from_yaml()
    model = MlpConfig.get_from_yaml()
    reports = Reports(num_agents, args.json)
    with tempfile.TemporaryDirectory() as folder:
        config.save_folder = folder
        task = Mpe(args.task.upper(), {"max_cycles": MAX_CYCLES})
        experiment = Experiment(task, algorithm, model, args.seed, config, callbacks=[reports])
        reports.record |= {
            "settings": {
                "algorithm": {"name": args.algorithm, **asdict(algorithm)},
                "experiment": {**asdict(config), "save_folder": None},
                "model": {name: str(value) for name, value in asdict(model).items()},
                "task": {"module": MODULES[args.task], **task.config, "continuous_actions": False},
                "groups": experiment.group_map,
                "seed": args.seed,
                "torch_threads": torch.get_num_threads(),
            },
            "versions": {name: version(name) for name in ("benchmarl", "torchrl", "tensordict", "torch", "mpe2")},
        }
        experiment.run()
        reports.record["seconds_of_training"] = time.time() - _STARTED
        reports.record["evaluation"] = {
            "episodes": args.episodes,
            "deterministic": _evaluate(experiment, args.seed, args.episodes, ExplorationType.DETERMINISTIC),
            "stochastic": _evaluate(experiment, args.seed, args.episodes, ExplorationType.RANDOM),
        }
    reports.write()
    print(json.dumps(reports.record["evaluation"]), flush=True)


class Mpe(PettingZooClass):
    """Makes the environments from MPE2, each with another seed. BenchMARL asks it for all else about a task."""

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], PettingZooWrapper]:
        numbers = count()

        def make() -> PettingZooWrapper:
            env = _make(self.name.lower(), continuous_actions=continuous_actions, **self.config)
            own_seed = None if seed is None else SEEDS_OF_A_RUN * seed + next(numbers)
            return PettingZooWrapper(env, return_state=True, categorical_actions=True, seed=own_seed, device=device)

        return make


class Reports(Callback):
    """Writes what each iteration came to, as a line of JSON and into the file."""

    def __init__(self, num_agents: int, path: Path) -> None:
        super().__init__()
        self.num_agents = num_agents
        self.path = path
        self.record: dict[str, Any] = {"iterations": []}

    def on_batch_collected(self, batch: Any) -> None:
        """The iteration before this one is over. The returns are of this one, whose data is not trained on yet."""
        ended = batch["next", "done"].squeeze(-1)
        by_group = {group: batch["next", group, "episode_reward"][ended] for group in self.experiment.group_map}
        frames = self.experiment.total_frames
        report = {
            "frames": frames,
            "agent_steps": frames * self.num_agents,
            "seconds": time.time() - _STARTED,
            "episodes": int(ended.sum()),
            **_means(by_group),
        }
        self.record["iterations"].append(report)
        print(json.dumps(report), flush=True)
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps(self.record, indent=1) + "\n")


def _make(task: str, **kwargs: Any) -> Any:
    return importlib.import_module(MODULES[task]).parallel_env(**kwargs)


def _means(returns: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """returns: of each group, [episodes, agents, 1]."""
    by_group = {group: each.mean().item() for group, each in returns.items()}
    return {
        "mean_return": torch.cat(list(returns.values()), dim=1).mean().item(),
        "by_group": by_group,
        "benchmarl_return": sum(by_group.values()) / len(by_group),
    }


@torch.no_grad()
def _evaluate(experiment: Experiment, seed: int, episodes: int, kind: ExplorationType) -> dict[str, Any]:
    env = experiment.test_env
    env.set_seed(EVALUATION_SEED + seed)
    with set_exploration_type(kind):
        played = [env.rollout(MAX_CYCLES, experiment.policy, break_when_any_done=True) for _ in range(episodes)]
    groups = experiment.group_map
    returns = {group: torch.stack([each["next", group, "reward"].sum(0) for each in played]) for group in groups}
    deviation = torch.cat(list(returns.values()), dim=1).mean((1, 2)).std()  # between episodes
    return {**_means(returns), "standard_error": deviation.item() / math.sqrt(episodes)}


if __name__ == "__main__":
    main()
