"""The learner as a child of a run."""

from __future__ import annotations

from sf.learner.args import EndOfRun, LearnerArgs
from sf.learner.worker import learner
from sf.run.children.roles.role import Role, Start
from sf.run.children.servers import NETWORKS


def _learner_arguments(start: Start) -> LearnerArgs:
    memory, policy_id = start.memory, start.idx
    plan, run = memory.plan, memory.plan.config.run
    counters = memory.counter_row("learner", policy_id)
    predecessor_env_steps = None
    if start.num_before:
        steps = memory.pool.env_steps_taken(policy_id)
        counters.add(steps=steps - counters.get("steps"))  # what was in the hands of the dead one is taken, and lost
        predecessor_env_steps = start.resumed_steps[policy_id] + steps
    policy_workers, orders = start.links.of_learner(policy_id)
    are_here = plan.config.run.serial
    return LearnerArgs(
        config=plan.config,
        policy_id=policy_id,
        spec=plan.networks[policy_id].spec,
        symmetries=plan.symmetries,
        teams=plan.teams,
        num_actors=plan.num_actors,
        bfloat16=plan.bfloat16,
        num_threads=plan.learner_threads,
        num_gradient_workers=plan.num_gradient_workers,
        weights=memory.weights[policy_id],
        states=memory.states[policy_id],
        policy_workers=None if are_here else policy_workers,
        slots=memory.pool.of_learner(policy_id),
        counters=counters,
        checkpoints=memory.checkpoints_of(policy_id),
        milestones=memory.run_dir.milestones_of(policy_id, plan.num_policies),
        target_env_steps=plan.target_env_steps if plan.num_policies == 1 else None,
        end=EndOfRun(
            env_steps=plan.target_env_steps if run.ends_by_steps else None,
            seconds=run.train_for_seconds if run.ends_by_seconds else None,
            others=[memory.counter_row("learner", idx) for idx in range(plan.num_policies) if idx != policy_id],
            others_before=sum(start.resumed_steps) - start.resumed_steps[policy_id],
        ),
        scheduled=memory.scheduled,
        levels=memory.levels,
        teaching=memory.teaching,
        games=memory.games,
        demonstrations=memory.demonstrations,
        recoveries=memory.recoveries,
        orders=orders,
        hyperparameters=dict(start.hyperparameters(policy_id)),
        predecessor_env_steps=predecessor_env_steps,
        started_at=memory.started_at,
        place=plan.place,
        stop=memory.stop,
    )


LEARNER = Role(
    name="learner",
    server=NETWORKS,
    body=learner,
    count=lambda plan: plan.num_policies,
    arguments=_learner_arguments,
    queue=lambda memory, idx: memory.pool.full[idx],
    recover=lambda memory, idx: memory.pool.recover_learner(idx),
    saves=True,
)
