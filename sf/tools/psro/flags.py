"""What the flags of `sf-train` mean to a command that trains best responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sf.config import Config
from sf.config.flags.players import PlayersConfig
from sf.tools.commands import cli

_OF_A_POOL = ("past_share", "players", "opponent_weights", "opponent_choice", "reference_ratings", "seats")
_OF_SNAPSHOTS = ("snapshot_every_env_steps", "snapshot_at_win_rate")


def default_end(args: Sequence[str], env_steps: int) -> Mapping[str, Any]:
    """How long a response is trained where the command line does not say it: `env_steps`."""
    early = cli.early_flags(args)
    return {} if {"train_for_env_steps", "train_for_env_frames"} & early.keys() else {"train_for_env_steps": env_steps}


def require_even(matches: int) -> None:
    """Raises ValueError for a number of matches in which both cannot play each seat equally often."""
    if matches % 2:
        raise ValueError(f"matches is {matches}: an even number, so that both play each seat equally often")


def require_followed(config: Config, whom_it_meets: str) -> None:
    """Raises ValueError for flags that the training of a response would not follow."""
    untouched = PlayersConfig()
    for name in (*_OF_A_POOL, *_OF_SNAPSHOTS):
        value = getattr(config.players, name)
        if value != getattr(untouched, name):
            raise ValueError(f"{name} is {value}: {whom_it_meets}: leave it out")
    if not config.sampler.async_rl:
        raise ValueError("async_rl is false: a response meets players that do not learn: leave it out")
    if config.run.restart_behavior != "resume":
        raise ValueError(
            f"restart_behavior is {config.run.restart_behavior}, but the same command goes on where it was: name "
            "another --experiment"
        )
    if config.population.num_policies != 1:
        raise ValueError(f"num_policies is {config.population.num_policies}: a response is one policy")
