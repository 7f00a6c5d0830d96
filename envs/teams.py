"""The teams of the agents of an environment: the flags about them, and which agents are in which team.

`sf.envs.registry.describe` puts the teams into `EnvSpec.teams`, where everybody else reads them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from sf.envs.errors import UsageError
from sf.envs.field_types import AS_JSON_LIST, require
from sf.envs.group import EnvSpec
from sf.envs.wrappers.layers import objects

_EXAMPLE = """'[["red_*"], ["blue_*"]]'"""
_MOST_SHOWN = 6  # names of agents in a sentence
SHARED_BEFORE = {False: "none", True: "all"}  # earlier values of share_reward


@dataclass(frozen=True)
class TeamOptions:
    """A part of `sf.envs.options.EnvOptions`: who is in which team, and how agents are rewarded together."""

    teams: str | None = field(default=None, metadata=AS_JSON_LIST)
    """Teams of the agents of an environment, as a JSON list with a list for each team of patterns of agent names, for
    example '[["red_*"], ["blue_*"]]'. YAML files and Python may use lists. Default: those that the environment
    knows."""

    share_reward: bool | Literal["none", "team", "all"] = "none"
    """Train each agent on the sum of the rewards of its team, or of all agents of its environment. true means all,
    false means none. Reported returns are those of the environment."""

    team_spirit: float = 0.0
    """Share of the mean reward of its team in what an agent is trained on, from 0 to 1; the rest is its own reward
    (OpenAI Five). It cannot be combined with share_reward, which is a sum."""

    zero_sum: bool = False
    """Subtract the mean reward of the other teams from what an agent is trained on, after share_reward or
    team_spirit."""

    ANNEALED = ("team_spirit",)
    """Fields that --anneal may change."""

    def check(self) -> None:
        """Raises UsageError for a value that cannot be."""
        if isinstance(self.share_reward, bool):
            object.__setattr__(self, "share_reward", SHARED_BEFORE[self.share_reward])
        require(0.0 <= self.team_spirit <= 1.0, f"team_spirit is {self.team_spirit}: from 0 to 1")
        require(
            not self.team_spirit or self.share_reward == "none",
            f"team_spirit is {self.team_spirit}, a share of a mean, and share_reward is {self.share_reward}, a sum: "
            "leave one of both out",
        )
        self.patterns  # noqa: B018  a wrong JSON is reported at once

    @property
    def patterns(self) -> list[list[str]] | None:
        """`teams` as lists. Raises UsageError where it is no JSON list with a list of texts for each team."""
        if self.teams is None:
            return None
        try:
            found = json.loads(self.teams)
        except json.JSONDecodeError as error:
            raise UsageError(f"teams is {self.teams}, which is not JSON ({error}): write it as {_EXAMPLE}") from None
        is_list = isinstance(found, list) and bool(found)
        if not is_list or not all(isinstance(team, list) and team and _are_texts(team) for team in found):
            raise UsageError(f"teams is {self.teams}: write a list with a list of names for each team, {_EXAMPLE}")
        return found


def with_teams(env_id: str, spec: EnvSpec, options: TeamOptions) -> EnvSpec:
    """Returns `spec` with the teams that `options` name in place of its own.

    Raises UsageError where a pattern matches no agent, or an agent is in two teams or in none.
    """
    if options.patterns is None:
        return spec
    names = agent_names(spec)
    teams: dict[str, int] = {}
    for idx, patterns in enumerate(options.patterns):
        for pattern in patterns:
            matched = [name for name in names if fnmatchcase(name, pattern)]
            if not matched:
                raise UsageError(
                    f"teams has {pattern!r}, which matches no agent of {env_id}: they are {_listed(names)}"
                )
            for name in matched:
                if teams.setdefault(name, idx) != idx:
                    raise UsageError(
                        f"teams puts {name} of {env_id} into two teams: change the patterns so that each agent is in "
                        "one"
                    )
    missing = [name for name in names if name not in teams]
    if missing:
        raise UsageError(f"teams puts {_listed(missing)} of {env_id} into no team: add a pattern for each")
    return replace(spec, teams=tuple(teams[name] for name in names))


def require_teams_for_rewards(env_id: str, spec: EnvSpec, options: TeamOptions) -> None:
    """Raises UsageError for rewards of teams where no teams are known, or there is no other team."""
    asked = {"share_reward": options.share_reward == "team", "team_spirit": options.team_spirit > 0}
    for name, is_asked in {**asked, "zero_sum": options.zero_sum}.items():
        if is_asked and not spec.teams:
            value = str(getattr(options, name)).lower()
            raise UsageError(
                f"{name} is {value}, and the teams of {env_id} are not known: name them, for example --teams {_EXAMPLE}"
            )
    if options.zero_sum and len(set(spec.teams)) < 2:
        raise UsageError(f"zero_sum is true, but all agents of {env_id} are one team: leave it out")


def agent_names(spec: EnvSpec) -> tuple[str, ...]:
    """Returns the names of the A agents: agent_0 and so on where the environment has none."""
    return spec.agents or tuple(f"agent_{a}" for a in range(spec.num_agents))


def sides_of(spec: EnvSpec) -> tuple[int, ...]:
    """Returns the side of each agent in a match, [A], from 0: its team, or itself where there are not two teams."""
    known = sorted(set(spec.teams))
    return tuple(known.index(team) for team in spec.teams) if len(known) > 1 else tuple(range(spec.num_agents))


def team_texts(spec: EnvSpec) -> list[str]:
    """Returns the names of the agents of each team, in words."""
    members: dict[int, list[str]] = {team: [] for team in sorted(set(spec.teams))}
    for name, team in zip(agent_names(spec), spec.teams, strict=True):
        members[team].append(name)
    return list(map(_listed, members.values()))


def teams_of_package(env: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Returns the teams of agents of these names, [A], in an environment whose package is known; () in any other.

    MAgent calls its agents red_0 or predator_0, and in combined_arms redmelee_0 and redranged_0.
    """
    if not any(type(each).__module__.split(".")[0] == "magent2" for each in objects(env)):
        return ()
    groups = [name.rpartition("_")[0] for name in names]
    of_groups = [next((color for color in ("red", "blue") if group.startswith(color)), group) for group in groups]
    found = list(dict.fromkeys(of_groups))
    return tuple(found.index(team) for team in of_groups)


def _are_texts(patterns: list[Any]) -> bool:
    return all(isinstance(pattern, str) for pattern in patterns)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
