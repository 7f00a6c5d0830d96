"""The evaluator as a child of a run, if the run evaluates or films its policies."""

from __future__ import annotations

from sf.envs.custom.given import given_env
from sf.envs.teams import sides_of
from sf.evaluation.evaluator import EvaluatorArgs, evaluator
from sf.run.children.roles.role import Role, Start
from sf.run.children.servers import NETWORKS
from sf.run.memory import RunMemory
from sf.shared.queues import IndexQueue


def _evaluator_arguments(start: Start) -> EvaluatorArgs:
    memory = start.memory
    return EvaluatorArgs(
        config=memory.plan.config,
        given_env=given_env(memory.plan.config.run.env),
        sides=sides_of(memory.plan.spec),
        roles=memory.plan.roles,
        recoveries=memory.recoveries,
        checkpoints=[memory.checkpoints_of(policy_id) for policy_id in range(memory.plan.num_policies)],
        videos=memory.videos,
        orders=_evaluator_orders(memory, start.idx),
        counters=memory.counter_row("evaluator", start.idx),
    )


def _evaluator_orders(memory: RunMemory, idx: int) -> IndexQueue:
    assert memory.evaluations is not None
    return memory.evaluations


EVALUATOR = Role(
    name="evaluator",
    server=NETWORKS,
    body=evaluator,
    count=lambda plan: plan.num_evaluators,
    arguments=_evaluator_arguments,
    queue=_evaluator_orders,
    is_optional=True,
)
