"""Roles: which policies may play which agents of an environment, by `--policy_of`."""

from __future__ import annotations

import json
from collections.abc import Iterable
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


def role_of_agents(roles: Roles, num_agents: int) -> tuple[int, ...]:
    """Returns the role of each agent, [A], numbered in the order of the agents; 0 for all without roles."""
    order = list(dict.fromkeys(roles))
    return tuple(order.index(own) for own in roles) or (0,) * num_agents


def role_of_policies(roles: Roles, num_policies: int) -> tuple[int, ...]:
    """Returns the role of each policy, [P], which is the first of its roles; 0 for all without roles."""
    order = list(dict.fromkeys(roles)) or [tuple(range(num_policies))]
    return tuple([policy_id in own for own in order].index(True) for policy_id in range(num_policies))


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


def require_roles_of_players(roles: Roles, population: PopulationConfig, players: PlayersConfig, spec: EnvSpec) -> None:
    """Raises UsageError where fixed opponents cannot play all roles but that of a policy, or nobody would learn one."""
    if not roles or not players.with_players:
        if players.player_roles and not roles:
            raise UsageError("player_roles is set, but the policies have no roles: set --policy_of, or leave it out")
        return
    all_roles = [*dict.fromkeys(roles)]
    if len(all_roles) < 2:
        raise UsageError(
            f"past_share is {players.past_share}, and policy_of has one role, so nobody is left for an opponent: leave "
            "policy_of out"
        )
    num_mains = population.num_policies - players.exploiters
    for idx, own in enumerate(all_roles):
        shared = {policy_id for other in all_roles[:idx] for policy_id in own if policy_id in other}
        if shared:
            raise UsageError(
                f"past_share is {players.past_share}, and policy_of gives policy {min(shared)} two roles: opponents "
                "play all roles but that of a policy, so give each policy one pattern"
            )
        if min(own) >= num_mains:
            raise UsageError(
                f"exploiters is {players.exploiters}, so the last {players.exploiters} policies are exploiters, and "
                f"policy_of has a role for them alone ({', '.join(map(str, own))}): add another policy to it"
            )
    numbers = role_of_agents(roles, spec.num_agents)
    for team in {*spec.teams}:
        agents = [agent for agent, its in enumerate(spec.teams) if its == team]
        inside = {numbers[agent] for agent in agents}
        if any(number in inside for agent, number in enumerate(numbers) if agent not in agents):
            raise UsageError(
                f"past_share is {players.past_share}, and a role of policy_of is in two teams: opponents play roles, "
                "so name roles that lie within teams, or leave policy_of out"
            )


def roles_of_patterns(patterns: Iterable[str], roles: Roles, spec: EnvSpec) -> list[frozenset[int]]:
    """Returns the roles whose agents each pattern of player_roles covers. Raises UsageError where there are none."""
    numbers, names = role_of_agents(roles, spec.num_agents), agent_names(spec)
    found = []
    for pattern in patterns:
        parts = pattern.split(",")
        covered = [any(fnmatchcase(name, part) for part in parts) for name in names]
        left_out = {number for number, is_covered in zip(numbers, covered, strict=True) if not is_covered}
        if left_out == {*numbers}:
            raise UsageError(
                f"player_roles has {pattern!r}, which covers no role of policy_of: write a pattern that matches all "
                f"agents of one (they are {', '.join(names)})"
            )
        found.append(frozenset(numbers) - left_out)
    return found
