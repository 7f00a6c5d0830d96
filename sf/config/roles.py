"""Roles: which policies may play which agents of an environment, by `--policy_of`."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

from sf.config.flags.players import PlayersConfig
from sf.config.flags.population import PopulationConfig
from sf.envs import EnvSpec, UsageError
from sf.envs.teams import agent_names

Roles = tuple[tuple[int, ...], ...]
"""[A] for each agent the policies that may play it, ascending; empty where every policy may play every agent."""


def roles_of(population: PopulationConfig, spec: EnvSpec, env: str) -> Roles:
    """Returns the roles of a run.

    Raises UsageError where a pattern matches no agent, an agent has several patterns or none, or a policy has no role
    or does not exist.
    """
    if population.policy_of is None:
        return ()
    names, of_agents = agent_names(spec), dict[str, tuple[int, ...]]()
    by_pattern = _policies_by_pattern(population.policy_of)
    for pattern, policies in by_pattern.items():
        matched = [name for name in names if fnmatchcase(name, pattern)]
        if not matched:
            raise UsageError(f"policy_of has {pattern!r}, which matches no agent of {env}: they are {', '.join(names)}")
        for name in matched:
            if of_agents.setdefault(name, policies) != policies:
                raise UsageError(f"policy_of has two patterns for {name} of {env}: change them so that each has one")
    missing = [name for name in names if name not in of_agents]
    if missing:
        raise UsageError(f"policy_of names no policy for {', '.join(missing)} of {env}: add a pattern")
    named = {policy_id for policies in of_agents.values() for policy_id in policies}
    for policy_id in sorted(named ^ set(range(population.num_policies))):
        what = "has no role" if policy_id < population.num_policies else f"is not one of {population.num_policies}"
        raise UsageError(
            f"policy {policy_id} {what}: policy_of has to name all policies from 0 on, so set --num_policies "
            f"{max(named) + 1}, or change the patterns"
        )
    return tuple(of_agents[name] for name in names)


def _policies_by_pattern(policy_of: str) -> dict[str, tuple[int, ...]]:
    example = """'{"adversary_*": 0, "agent_*": [1, 2]}'"""
    try:
        found = json.loads(policy_of)
    except json.JSONDecodeError as error:
        raise UsageError(f"policy_of is {policy_of}, which is not JSON ({error}): write it as {example}") from None
    if not isinstance(found, dict) or not found:
        raise UsageError(f"policy_of is {policy_of}: write an object with policies by pattern, {example}")
    return {pattern: _policies(policies, policy_of, example) for pattern, policies in found.items()}


def _policies(named: Any, policy_of: str, example: str) -> tuple[int, ...]:
    policies = named if isinstance(named, list) else [named]
    if not policies or not all(type(policy_id) is int and policy_id >= 0 for policy_id in policies):
        raise UsageError(f"policy_of is {policy_of}: name policies by their numbers, from 0 on, {example}")
    return tuple(sorted({*policies}))


def kinds_played(roles: Roles, spec: EnvSpec, policy_id: int) -> tuple[int, ...]:
    """Returns the kinds of the agents that a policy may play, ascending: all of them without roles."""
    played = (kind for agent, kind in enumerate(spec.kinds) if not roles or policy_id in roles[agent])
    return tuple(sorted({*played}))


def populations(roles: Roles, num_policies: int) -> list[list[int]]:
    """Returns the policies that have the same roles, and so can be compared: all of them without roles."""
    by_agents: dict[tuple[int, ...], list[int]] = {}
    for policy_id in range(num_policies):
        agents = tuple(agent for agent, policies in enumerate(roles) if policy_id in policies)
        by_agents.setdefault(agents, []).append(policy_id)
    return list(by_agents.values())


def require_plain_players(roles: Roles, players: PlayersConfig) -> None:
    """Raises UsageError for players that do not learn, which are not drawn by role."""
    if roles and players.with_players:
        raise UsageError(
            f"past_share is {players.past_share}, and policy_of is set: past selves play whole sides, not roles, so "
            "leave one of the two out"
        )
