"""The policy worker as a child of a run."""

from __future__ import annotations

from sf.policy.worker import PolicyWorkerArgs, policy_worker
from sf.run.children.roles.role import Role, Start
from sf.run.children.servers import NETWORKS
from sf.run.startup.teachers import keep
from sf.shared.leaves import spec_of_leaves


def _policy_arguments(start: Start) -> PolicyWorkerArgs:
    memory, idx = start.memory, start.idx
    plan, config = memory.plan, memory.plan.config
    policy_id = memory.channels.policy_of(idx)
    spec, leaves = plan.networks[policy_id].spec, memory.leaves
    return PolicyWorkerArgs(
        spec=spec if leaves is None else spec_of_leaves(spec),
        model=config.model,
        bfloat16=plan.bfloat16,
        synchronous=not config.sampler.async_rl,
        searches=leaves is not None,
        num_threads=plan.policy_threads,
        seed=config.run.seed,
        idx=idx,
        weights=memory.weights[policy_id],
        states=memory.states[policy_id],
        learner=start.weights or start.links.of_policy_worker(policy_id),
        rows=memory.pool.arrays if leaves is None else leaves.arrays,
        channel=memory.channels.of_policy_worker(idx),
        counters=memory.counter_row("policy", idx),
        policy_id=policy_id,
        teaching=memory.teaching,
        teachers=keep(config.learner.teacher, plan.teachers, memory.run_dir.path) if plan.teachers else None,
        num_actors=plan.num_actors,
    )


POLICY = Role(
    name="policy",
    server=NETWORKS,
    body=policy_worker,
    count=lambda plan: plan.num_policy_workers,
    arguments=_policy_arguments,
    queue=lambda memory, idx: memory.channels.requests[idx],
    owes=lambda memory, idx: memory.channels.has_open_requests(idx),
    recover=lambda memory, idx: memory.channels.recover_policy_worker(idx),
    needs=lambda memory, idx: f"learner-{memory.channels.policy_of(idx)}",
)
