"""The rollout worker as a child of a run."""

from __future__ import annotations

from sf.envs.custom.given import given_env
from sf.rollout.args import RolloutWorkerArgs
from sf.rollout.assignment import AssignmentRules
from sf.rollout.worker import rollout_worker
from sf.run.children.roles.role import Role, Start
from sf.run.children.servers import SIMULATORS
from sf.run.memory import RunMemory
from sf.run.startup.search import search_args


def _rollout_arguments(start: Start) -> RolloutWorkerArgs:
    memory, idx = start.memory, start.idx
    plan, config = memory.plan, memory.plan.config
    return RolloutWorkerArgs(
        env=config.run.env,
        given_env=given_env(config.run.env),
        options=config.environment,
        num_envs_per_group=config.sampler.num_envs_per_group,
        rollout=config.rollout,
        with_clock=bool(config.model.critic_clock),
        with_state=config.model.critic == "state",
        bootstrap_truncated=config.learner.bootstrap_truncated,
        decorrelate=config.sampler.decorrelate_episodes,
        seed=config.run.seed,
        seed_key=(sum(start.resumed_steps), start.num_before),  # what is drawn must not repeat
        is_serial=config.run.serial,
        is_synchronous=not config.sampler.async_rl,
        is_first_start=start.num_before == 0,
        core=memory.pinned.of(idx),
        slots=memory.pool.of_worker(),
        channel=memory.channels.of_worker(idx),
        counters=memory.counter_row("rollout", idx),
        assignment=AssignmentRules(
            num_policies=plan.num_policies,
            mixed=config.population.pbt_mix_policies_in_one_env,
            num_agents=plan.spec.num_agents,
            rollouts_per_draw=config.population.pbt_rollouts_per_draw,
            seats=memory.seats,
            past_share=config.players.past_share,
            waits_for_players=config.players.waits_for_players,
            targets=plan.targets,
            sides=plan.sides,
            roles=plan.roles,
        ),
        action_space=plan.spec.action_space,
        objective=config.population.pbt_target_objective,
        shaping=memory.shaping,
        scheduled=memory.scheduled,
        levels=memory.levels,
        tasks=memory.tasks,
        found_tasks=memory.found_tasks,
        search=search_args(plan, memory.leaves) if memory.leaves is not None else None,
    )


def _rollout_owes(memory: RunMemory, idx: int) -> bool:
    """Returns whether a group could go on, with its answers and slots. If it stays so, a message about it was taken."""
    return any(memory.pool.can_go_on(group_idx) for group_idx in memory.channels.groups_with_answers(idx))


def _recover_rollout(memory: RunMemory, idx: int) -> None:
    memory.channels.recover_worker(idx)
    memory.pool.recover_worker(idx)
    if memory.seats is not None:
        memory.seats.recover_worker(memory.channels.of_worker(idx).groups)


def _episodes_at_once(memory: RunMemory, idx: int) -> int:
    """Returns the number of agents that have not left their match."""
    plan = memory.plan
    num_actors = plan.config.sampler.num_groups_per_worker * plan.actors_per_group
    return num_actors - int(memory.counter_row("rollout", idx).get("away"))


ROLLOUT = Role(
    name="rollout",
    server=SIMULATORS,
    body=rollout_worker,
    count=lambda plan: plan.num_workers,
    arguments=_rollout_arguments,
    queue=lambda memory, idx: memory.channels.inboxes[idx],
    owes=_rollout_owes,
    recover=_recover_rollout,
    episodes_at_once=_episodes_at_once,
    starts_gradually=True,
)
