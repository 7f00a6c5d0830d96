"""Everything about an environment that a flag can change. Each field is a command-line flag of the same name.

A family with flags of its own has them in a dataclass beside it, which is a base of `EnvOptions`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from sf.envs.atari.options import AtariOptions
from sf.envs.doom.options import DoomOptions
from sf.envs.errors import UsageError
from sf.envs.field_types import AS_JSON, check_fields
from sf.envs.tasks.options import TaskOptions
from sf.envs.teams import TeamOptions
from sf.envs.wrappers.named import NamedWrapper, read_all

_MOST_FRAMES = 1_000_000  # of a step: the frames of a run have to be a number of 64 bits


@dataclass(frozen=True)
class SharedOptions:
    """Options that environments of several families read."""

    env_frameskip: int | None = None
    """Simulator frames per decision; the action is repeated. Default: what is usual for the environment."""

    env_kwargs: str = field(default="{}", metadata=AS_JSON)
    """Keyword arguments of the environment as a JSON object, for example '{"continuous": true}'. YAML files and
    Python may use a mapping."""

    env_wrappers: tuple[str, ...] = field(default=(), metadata=AS_JSON)
    """Wrappers around the environment, the first innermost: module:Name, for example
    gymnasium.wrappers:FlattenObservation, or with arguments '{"gymnasium.wrappers:TimeLimit": {"max_episode_steps":
    100}}'. YAML files and Python may use mappings."""

    env_options: str = field(default="{}", metadata=AS_JSON)
    """Options that each episode begins with, as a JSON object, for environments that declare them as `schedulable`:
    '{"size": 16}', or a range to draw from for each episode, '{"size": [5, 16]}'. --anneal env.NAME changes them during
    training. YAML files and Python may use a mapping."""

    strict_spaces: bool = False
    """Treat an observation outside the bounds of its Box as an error, checked at every step. false: check one
    observation in 127, report it once, and train on."""

    single_envs: bool = False
    """Step Gymnasium environments one by one, also those that Gymnasium has a faster vectorised version of. Players
    that search set it, as they copy the environment that they play in."""

    search_sees_all: bool = False
    """Let players that search see the whole state of a game with hidden state, such as rts_mini. false: they refuse to
    play it. docs/search.md."""

    advice: tuple[str, ...] = ()
    """Bots of the simulator that say at each decision what they would do, in observations advice_NAME. --teacher
    bot:NAME sets it."""

    show_agent: bool | Literal["auto"] = "auto"
    """Show each agent its index among the agents of its environment, as the observation agent_index (one-hot). auto:
    if one policy plays agents whose spaces differ, and in teams of 2 to 16 agents (OpenAI Five)."""

    def check(self) -> None:
        """Raises UsageError for a value that cannot be."""
        if self.env_frameskip is not None and self.env_frameskip < 1:
            raise UsageError(f"env_frameskip is {self.env_frameskip}: it must be at least 1 frame a step")
        if self.env_frameskip is not None and self.env_frameskip > _MOST_FRAMES:
            raise UsageError(f"env_frameskip is {self.env_frameskip}: it must be at most {_MOST_FRAMES} frames a step")
        self.kwargs  # noqa: B018  a wrong JSON is reported at once
        self.wrappers  # noqa: B018
        self.option_ranges  # noqa: B018

    @property
    def kwargs(self) -> dict:
        """`env_kwargs` as a dictionary. Raises UsageError where it is not a JSON object."""
        try:
            parsed = json.loads(self.env_kwargs)
        except json.JSONDecodeError as error:
            raise UsageError(f"env_kwargs is not JSON ({error}): write it as '{{\"name\": value}}'") from None
        if not isinstance(parsed, dict):
            raise UsageError(f"env_kwargs is {self.env_kwargs}: it must be a JSON object, '{{\"name\": value}}'")
        return parsed

    @property
    def option_ranges(self) -> dict[str, tuple[float, float]]:
        """`env_options` as ranges. Raises UsageError where it is no JSON object of numbers and pairs of numbers."""
        try:
            given = json.loads(self.env_options)
        except json.JSONDecodeError as error:
            raise UsageError(f"env_options is not JSON ({error}): write it as '{{\"name\": value}}'") from None
        found = {}
        for name, value in given.items() if isinstance(given, dict) else [("", given)]:
            ends = value if isinstance(value, list) else [value, value]
            are_numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
            if not name or not are_numbers or len(ends) != 2 or ends[0] > ends[1]:
                raise UsageError(
                    f"env_options is {self.env_options}: it must be a JSON object of names to numbers, or to the "
                    "lowest and the highest number of a range, such as '{\"size\": [5, 16]}'"
                )
            found[name] = (ends[0], ends[1])
        return found

    @property
    def wrappers(self) -> tuple[NamedWrapper, ...]:
        """`env_wrappers`, each with its arguments. Raises UsageError where one is not written as it should be."""
        return read_all(self.env_wrappers)


@dataclass(frozen=True)
class EnvOptions(
    DoomOptions, AtariOptions, TaskOptions, TeamOptions, SharedOptions
):  # the fields of the last base come first
    """Options of environments; each family reads its own and leaves the rest alone."""

    def __post_init__(self) -> None:
        check_fields(self)
        parts: Any = EnvOptions.__bases__
        for part in parts:
            part.check(self)
