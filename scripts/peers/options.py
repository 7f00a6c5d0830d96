"""The flags of scripts/bench_peers.py, and the kinds of environments: each needs packages, and a program of a peer."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["doom", "atari", "atari_match", "mujoco", "box2d", "minigrid", "gymnasium"]
"""The last is any other environment of Gymnasium."""

_PATTERNS: dict[Kind, str] = {
    "doom": r"doom_\w+",
    "atari": r"atari_\w+",
    "atari_match": r"pettingzoo:atari/\w+",
    "mujoco": r"(Ant|HalfCheetah|Hopper|Humanoid|HumanoidStandup|InvertedDoublePendulum|InvertedPendulum|Pusher|Reacher"
    r"|Swimmer|Walker2d)-v[45]",
    "box2d": r"(BipedalWalker|BipedalWalkerHardcore|CarRacing|LunarLander|LunarLanderContinuous)-v\d",
    "minigrid": r"MiniGrid-[\w-]+-v\d",
}


def kind_of(env: str) -> Kind:
    """Of an environment, by its name in this project."""
    return next((kind for kind, pattern in _PATTERNS.items() if re.fullmatch(pattern, env)), "gymnasium")


REPOSITORY = Path(__file__).resolve().parent.parent.parent

PeerName = Literal["sample_factory", "stable_baselines3", "pufferlib"]


@dataclass(frozen=True)
class Options:
    """What to compare, and for how long."""

    env: str = "doom_battle"
    """doom_* or atari_*, a game of several players such as pettingzoo:atari/pong_v3, a MuJoCo task of Gymnasium such as
    Hopper-v5, or CartPole-v1: a name of this project."""

    peers: tuple[PeerName, ...] = ("sample_factory",)
    """What this project is compared with. Stable-Baselines3 has no Doom. PufferLib is run on CartPole-v1, and nothing
    else."""

    seconds: float = 120.0
    """Wall time of each run, start-up included. With --to_return: its limit."""

    to_return: float | None = None
    """Train until the mean return of the last 100 training episodes reaches this, and report how long it took.
    Returns are the environment's own: whole games, before clipping."""

    rounds: int = 3
    """How often each trainer runs."""

    warm_up_seconds: float = 150.0
    """Train with this project for so long before the rounds, unmeasured: the first run of a network compiles the step
    of the policy beside training, and all others have it from the disk. 0: do not."""

    num_workers: int | None = 2
    """Rollout worker processes. This flag and the next three are for this project and Sample Factory, and None leaves
    each its own default. PufferLib gets the last two. Stable-Baselines3 has the settings of its zoo."""

    num_envs_per_worker: int | None = 8
    """Environments of one rollout worker."""

    batch_size: int | None = 2048
    """Samples of one step of the optimiser."""

    rollout: int | None = 32
    """Steps of one trajectory."""

    device: Literal["cpu", "cuda"] = "cpu"
    """All trainers run their networks there."""

    peers_dir: Path = REPOSITORY / ".peers"
    """Holds the virtual environments of the peers."""

    json: Path | None = None
    """Also write everything to this file."""

    peer_flags: str = ""
    """More flags for Sample Factory or PufferLib, as one string: "--worker_num_splits=1"."""

    own_flags: str = ""
    """More flags for this project, as one string: "--precision float32"."""

    def __post_init__(self) -> None:
        if self.kind not in ("doom", "atari", "atari_match", "mujoco") and self.env != "CartPole-v1":
            raise ValueError(
                f"env is {self.env}: name one of doom_*, atari_*, pettingzoo:atari/*, MuJoCo's, such as Hopper-v5, or "
                "CartPole-v1"
            )
        if not self.peers or len(set(self.peers)) < len(self.peers):
            raise ValueError(f"peers is {' '.join(self.peers) or 'empty'}: name at least one, and each once")
        if not self.seconds >= 30:
            raise ValueError(f"seconds is {self.seconds}: at least 30, for Sample Factory reports every 5 s")
        if self.to_return is not None and not math.isfinite(self.to_return):
            raise ValueError(f"to_return is {self.to_return}: name the return to reach, a finite number")
        if self.to_return is not None and self.kind == "doom":
            raise ValueError(f"to_return is for atari_* and MuJoCo: both trainers shape the rewards of {self.env}")
        if self.to_return is not None and self.kind == "atari_match":
            raise ValueError(
                f"to_return is for atari_* and MuJoCo: the mean return of all players of {self.env} says little"
            )
        if self.to_return is not None and "pufferlib" in self.peers:
            raise ValueError("to_return is not for pufferlib: episodes of its CartPole end after 200 steps, not 500")
        if self.warm_up_seconds and not self.warm_up_seconds >= 30:
            raise ValueError(f"warm_up_seconds is {self.warm_up_seconds}: at least 30, or 0 for none")
        if self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds}: at least 1")

    @property
    def kind(self) -> Kind:
        return kind_of(self.env)

    @property
    def frameskip(self) -> int:
        """Frames of one decision, where Stable-Baselines3 counts decisions."""
        return 4 if self.kind == "atari" else 1

    @property
    def shared_flags(self) -> list[str]:
        names = ("num_workers", "num_envs_per_worker", "batch_size", "rollout")
        return [f"--{name}={value}" for name in names if (value := getattr(self, name)) is not None]
