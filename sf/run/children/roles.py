"""The kinds of children of a run: what each is given at its start, and the role that the supervisor knows it by."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sf.envs.custom.given import given_env
from sf.evaluation.evaluator import EvaluatorArgs, evaluator
from sf.evaluation.play.opponents import Opponent
from sf.league.players.snapshots import DIRECTORY
from sf.league.players.worker import PlayerWorkerArgs, player_worker
from sf.learner.args import EndOfRun, LearnerArgs
from sf.learner.worker import learner
from sf.policy.worker import PolicyWorkerArgs, policy_worker
from sf.rollout.assignment import AssignmentRules
from sf.rollout.group import RolloutWorkerArgs
from sf.rollout.worker import rollout_worker
from sf.run.children.role import Body, Role, Start
from sf.run.children.servers import NETWORKS, SIMULATORS
from sf.run.memory import RunMemory
from sf.run.plan import Plan
from sf.shared.queues import IndexQueue


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
        bootstrap_truncated=config.learner.bootstrap_truncated,
        decorrelate=config.sampler.decorrelate_episodes,
        seed=config.run.seed,
        seed_key=(sum(start.resumed_steps), start.num_before),  # what is drawn must not repeat
        is_synchronous=not config.sampler.async_rl,
        is_first_start=start.num_before == 0,
        resumed_episodes=start.resumed_episodes // (plan.num_actors * plan.place.size),
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
        ),
        action_space=plan.spec.action_space,
        objective=config.population.pbt_target_objective,
        shaping=memory.shaping,
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
)


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
    return LearnerArgs(
        config=plan.config,
        policy_id=policy_id,
        spec=plan.spec,
        symmetries=plan.symmetries,
        num_actors=plan.num_actors,
        bfloat16=plan.bfloat16,
        num_threads=plan.learner_threads,
        num_gradient_workers=plan.num_gradient_workers,
        weights=memory.weights[policy_id],
        states=memory.states[policy_id],
        policy_workers=policy_workers,
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


def _policy_arguments(start: Start) -> PolicyWorkerArgs:
    memory, idx = start.memory, start.idx
    plan, config = memory.plan, memory.plan.config
    policy_id = memory.channels.policy_of(idx)
    return PolicyWorkerArgs(
        spec=plan.spec,
        model=config.model,
        bfloat16=plan.bfloat16,
        synchronous=not config.sampler.async_rl,
        num_threads=plan.policy_threads,
        seed=config.run.seed,
        idx=idx,
        weights=memory.weights[policy_id],
        states=memory.states[policy_id],
        learner=start.links.of_policy_worker(policy_id),
        rows=memory.pool.arrays,
        channel=memory.channels.of_policy_worker(idx),
        counters=memory.counter_row("policy", idx),
    )


def _learner_of(memory: RunMemory, idx: int) -> str:
    return f"learner-{memory.channels.policy_of(idx)}"


POLICY = Role(
    name="policy",
    server=NETWORKS,
    body=policy_worker,
    count=lambda plan: plan.num_policy_workers,
    arguments=_policy_arguments,
    queue=lambda memory, idx: memory.channels.requests[idx],
    owes=lambda memory, idx: memory.channels.has_open_requests(idx),
    recover=lambda memory, idx: memory.channels.recover_policy_worker(idx),
    needs=_learner_of,
)


def _player_arguments(start: Start) -> PlayerWorkerArgs:
    memory, plan = start.memory, start.memory.plan
    assert memory.seats is not None
    return PlayerWorkerArgs(
        directory=memory.run_dir.path / DIRECTORY,
        trusts=plan.config.run.trust,
        opponents={name: entrant for name, entrant in plan.entrants.items() if isinstance(entrant, Opponent)},
        spec=plan.spec,
        model=plan.config.model,
        bfloat16=plan.bfloat16,
        device=plan.device_of(0),
        num_threads=plan.policy_threads,
        seed=plan.config.run.seed,
        seed_key=(sum(start.resumed_steps), start.num_before),  # what is drawn must not repeat
        num_actors=plan.num_actors,
        seats=memory.seats,
        rows=memory.pool.arrays,
        channel=memory.channels.of_policy_worker(memory.channels.player_worker_idx),
        counters=memory.counter_row("player", start.idx),
    )


def _player_owes(memory: RunMemory, idx: int) -> bool:
    return memory.channels.has_open_requests(memory.channels.player_worker_idx)


def _recover_player(memory: RunMemory, idx: int) -> None:
    memory.channels.recover_policy_worker(memory.channels.player_worker_idx)


PLAYER = Role(
    name="player",
    server=NETWORKS,
    body=player_worker,
    count=lambda plan: int(plan.config.players.with_players),
    arguments=_player_arguments,
    queue=lambda memory, idx: memory.channels.requests[memory.channels.player_worker_idx],
    owes=_player_owes,
    recover=_recover_player,
)


def _evaluator_arguments(start: Start) -> EvaluatorArgs:
    memory = start.memory
    return EvaluatorArgs(
        config=memory.plan.config,
        given_env=given_env(memory.plan.config.run.env),
        num_agents=memory.plan.spec.num_agents,
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
