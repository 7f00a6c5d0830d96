"""The seats of a match that have a population each in `sf-psro`: its teams, or its agents if it has no teams."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape
from typing import Literal, NamedTuple

from sf.config import Config
from sf.envs import EnvSpec
from sf.envs.field_types import require
from sf.envs.openspiel.family import PREFIX
from sf.envs.teams import agent_names, sides_of
from sf.tools.psro.flags import has_two_equal_sides, require_two_equal_sides
from sf.tools.psro.judge import utility_of


class Seat(NamedTuple):
    """A part of a match with a population of its own. agents: [A'] their numbers. pattern: of their names."""

    name: str
    agents: Sequence[int]
    pattern: str


def seats_of(spec: EnvSpec) -> list[Seat]:
    """Returns the seats of an environment in the order of its agents: its teams, or its agents if it has no teams."""
    names, sides = agent_names(spec), sides_of(spec)
    found = []
    for side in dict.fromkeys(sides):
        agents = [agent for agent, own in enumerate(sides) if own == side]
        name = names[agents[0]] if len(agents) == 1 else f"team_{side}"
        found.append(Seat(name, agents, ",".join(escape(names[agent]) for agent in agents)))
    return found


def is_by_seat(asked: bool | Literal["auto"], solver: str, config: Config, spec: EnvSpec) -> bool:
    """Returns whether a search has a population for each seat. asked: as the flag.

    Raises UsageError for a solver that does not solve such a game, or a game that one network cannot play.
    """
    env, seats = config.run.env, seats_of(spec)
    is_zero_sum = not env.startswith(PREFIX) or utility_of(config) == "ZERO_SUM"
    kinds = {tuple(sorted(spec.kinds[agent] for agent in seat.agents)) for seat in seats if spec.kinds}
    if asked is False or (asked == "auto" and has_two_equal_sides(spec) and len(kinds) < 2 and is_zero_sum):
        require_two_equal_sides(config, spec)
        return False
    require(len(seats) > 1, f"env is {env}, of {spec.num_agents} agents: a response needs an opponent")
    what = f"has {len(seats)} seats" if len(seats) > 2 else "is not zero-sum"
    require(
        (len(seats) == 2 and is_zero_sum) or solver in ("alpharank", "uniform"),
        f"meta_solver is {solver}, and {env} {what}: take alpharank or uniform",
    )
    return True


def config_of_responses(config: Config, spec: EnvSpec) -> Config:
    """Returns the configuration of a run that trains a best response for each seat, each for as long as one."""
    seats = seats_of(spec)
    run = config.run
    return config.replace(
        num_policies=len(seats),
        policy_of={pattern: number for number, seat in enumerate(seats) for pattern in seat.pattern.split(",")},
        train_for_env_steps=None if run.train_for_env_steps is None else len(seats) * run.train_for_env_steps,
        train_for_env_frames=None if run.train_for_env_frames is None else len(seats) * run.train_for_env_frames,
    )
