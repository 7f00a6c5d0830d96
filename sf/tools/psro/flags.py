"""Rules, files and sentences of the two commands that train best responses. No torch, so that --help is quick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sf.config import Config
from sf.config.flags.players import PlayersConfig
from sf.envs import EnvSpec
from sf.envs.errors import UsageError
from sf.envs.field_types import require
from sf.envs.teams import sides_of
from sf.storage.run_dir import RunDir
from sf.tools.commands import cli

_OF_A_POOL = (
    "past_share", "players", "opponent_weights", "player_roles", "opponent_choice", "reference_ratings", "seats",
    "mix_teams",
)  # fmt: skip
_OF_SNAPSHOTS = ("snapshot_every_env_steps", "snapshot_at_win_rate")


def default_end(args: Sequence[str], env_steps: int) -> Mapping[str, Any]:
    """Returns how long a response is trained if the command line does not say it: `env_steps`."""
    early = cli.early_flags(args)
    return {} if {"train_for_env_steps", "train_for_env_frames"} & early.keys() else {"train_for_env_steps": env_steps}


def require_even(matches: int) -> None:
    """Raises ValueError for a number of matches in which both cannot play each seat equally often."""
    require(matches % 2 == 0, f"matches is {matches}: an even number, so that both play each seat equally often")


def has_two_equal_sides(spec: EnvSpec) -> bool:
    """Returns whether a match is between two agents, or two teams of one size."""
    sizes = [*Counter(sides_of(spec)).values()]
    return len(sizes) == 2 and sizes[0] == sizes[1]


def require_two_equal_sides(config: Config, spec: EnvSpec) -> None:
    """Raises ValueError for an environment without two agents, or two teams of the same size."""
    require(
        has_two_equal_sides(spec),
        f"env is {config.run.env}, of {spec.num_agents} agents that are no two teams of one size: a response meets one "
        "opponent, so name two --teams. sf-train --past_share trains against past selves with any number",
    )


def require_response(config: Config, whom_it_meets: str) -> None:
    """Raises ValueError for flags that a response would not follow."""
    untouched = PlayersConfig()
    for name in (*_OF_A_POOL, *_OF_SNAPSHOTS):
        value = getattr(config.players, name)
        require(value == getattr(untouched, name), f"{name} is {value}: {whom_it_meets}: leave it out")
    require(config.sampler.async_rl, "async_rl is false: a response meets players that do not learn: leave it out")
    behavior, num_policies = config.run.restart_behavior, config.population.num_policies
    require(
        behavior == "resume",
        f"restart_behavior is {behavior}, but the same command goes on where it was: name another --experiment",
    )
    require(num_policies == 1, f"num_policies is {num_policies}: a response is one policy")
    require(config.population.policy_of is None, "policy_of is set: each seat has a response of its own: leave it out")


def require_no_run(directory: Path) -> None:
    """Raises UsageError if the directory of a search is that of a run."""
    if RunDir(directory).config.is_file():
        raise UsageError(f"{directory} is a run of sf-train, not of this command: name another --experiment")


@contextmanager
def files_of(directory: Path) -> Iterator[None]:
    """Turns an OSError of what is read or written inside into a UsageError that says what to change."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{error.filename or directory} cannot be written or read ({error.strerror or error}): change that, and "
            "the same command goes on, or name another --experiment"
        ) from None


@contextmanager
def saying_how_to_go_on(what_stopped: Callable[[], str]) -> Iterator[None]:
    """Says that the same command goes on where a signal ends what is inside, in training or in matches."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt):
        say(f"{what_stopped()}: the same command goes on")
        raise


def say(line: str) -> None:
    print(line, flush=True)
