"""Roles: groups of agents that the same policies play. `--policy_of` names them, see `sf.config.roles`."""

from __future__ import annotations

from collections.abc import Sequence

Roles = tuple[tuple[int, ...], ...]
"""[A] for each agent the policies that may play it, ascending; empty where every policy may play every agent."""


def role_of_agents(roles: Sequence[tuple[int, ...]], num_agents: int) -> tuple[int, ...]:
    """Returns the role of each agent, [A], numbered in the order of the agents; 0 for all without roles."""
    order = list(dict.fromkeys(roles))
    return tuple(order.index(own) for own in roles) or (0,) * num_agents


def role_of_policies(roles: Sequence[tuple[int, ...]], num_policies: int) -> tuple[int, ...]:
    """Returns the role of each policy, [P], where each has one; 0 for all without roles."""
    order = list(dict.fromkeys(roles)) or [tuple(range(num_policies))]
    return tuple(
        next(number for number, own in enumerate(order) if policy_id in own) for policy_id in range(num_policies)
    )
