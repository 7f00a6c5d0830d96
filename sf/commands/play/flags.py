"""The flags of `sf-play`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

_MOST_EPISODES = 10_000


@dataclass(frozen=True)
class PlayFlags:
    """What is played, against whom, and how fast."""

    env: tyro.conf.Positional[str]
    """An environment, such as CartPole-v1 (sf-envs lists them), or a run, a checkpoint, the folder of a policy,
    hf:USER/NAME or zoo/NAME (docs/enjoy.md lists the zoo): its environment, and in a match its policy as your
    opponent."""

    against: tuple[str, ...] = ()
    """Who plays the other agents of a match: runs or checkpoints, random (random moves), openspiel:mcts:N (tree search
    with N simulations a move, in OpenSpiel's games of perfect information), bot:NAME (a bot of the simulator, see
    docs/league.md), or module:Name (a function of the observation that returns an action, or a class with a method
    act). Default: the policy of the run, else random. In an environment of one agent: the name of one of
    its own opponents, where it has some."""

    agent: int | None = None
    """Which agent of a match you are, from 1. Default: each in turn."""

    episodes: int = 3
    """Number of episodes, or of matches."""

    wait: bool | None = None
    """Wait for a key at each step. false: go on without one, with the action that does nothing, or the first. Default:
    true where agents take turns, and for environments of at most 4 pictures per second."""

    fps: float | None = None
    """Pictures of the environment per second, from 0.1 to 240: how fast it runs. Default: its own rate."""

    env_kwargs: str = "{}"
    """As in sf-train. With a run, they are added to its own."""

    env_wrappers: tuple[str, ...] = ()
    """As in sf-train. With a run, they replace its own."""

    override: tuple[str, ...] = ()
    """Other environment options, for example --override env_frameskip=1."""

    checkpoint: str = "latest"
    """latest, or best: the best checkpoint of a run so far (docs/evaluation.md says by which measure)."""

    policy: int | None = None
    """Number of the policy to play against, in a run with several. Default: all of them, in turn."""

    deterministic: bool = False
    """Policies take their most probable action. false: they sample actions, as in training."""

    seed: int = 0
    """Seed of the environment, and of the actions of the others."""

    json: Path | None = None
    """Write the episodes, and your mean return and win rate, to this file."""

    trust: bool = False
    """Allow importing the environment, encoder or model that a checkpoint names (module:Name). This runs their code.
    Needed only if you have not trained with them before: docs/reliability.md."""

    def __post_init__(self) -> None:
        if not 1 <= self.episodes <= _MOST_EPISODES:
            raise ValueError(f"episodes is {self.episodes}: from 1 to {_MOST_EPISODES}")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}: it must be 0 or greater")
        if self.fps is not None and not 0.1 <= self.fps <= 240.0:
            raise ValueError(f"fps is {self.fps}: from 0.1 to 240")
