"""The table of all roles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sf.run.children.roles.evaluator import EVALUATOR
from sf.run.children.roles.learner import LEARNER
from sf.run.children.roles.player import PLAYER
from sf.run.children.roles.policy import POLICY
from sf.run.children.roles.role import Body, Role
from sf.run.children.roles.rollout import ROLLOUT
from sf.run.plan import Plan

# In the order in which they start: simulators take longest, policy workers attach to the memory of their learner.
ROLES = (ROLLOUT, LEARNER, POLICY, PLAYER, EVALUATOR)


def counts(plan: Plan) -> dict[str, int]:
    """Children of a run, by role."""
    return {role.name: role.count(plan) for role in ROLES}


def roles_with(bodies: Mapping[str, Body]) -> tuple[Role, ...]:
    """`ROLES`, with other bodies for those roles that `bodies` names: benchmarks and tests put simpler ones there."""
    unknown = bodies.keys() - {role.name for role in ROLES}
    assert not unknown, unknown
    return tuple(dataclasses.replace(role, body=bodies.get(role.name, role.body)) for role in ROLES)
