"""From a configuration to the plan of a run, and whether it can work.

Everything that can be known to be wrong is found here, before any process starts.
"""

from __future__ import annotations

import math
from typing import Literal

from sf.config import Config
from sf.config.auto_values import with_learning_rate, with_sizes
from sf.config.schedules import parse
from sf.envs import ActionSpec, EnvSpec
from sf.envs.added.episode_options import LEVEL
from sf.envs.errors import UsageError
from sf.evaluation.episode_video import require_drawable
from sf.evaluation.play.exploitability import information_states, require_no_memory
from sf.league.players.entrants import find_reference
from sf.league.reference import played
from sf.learner.batches.symmetric_images import find_symmetries
from sf.learner.optimizer.optimizer import require_available
from sf.ranks.place import ALONE_HERE, Place, require_can_be_ranked
from sf.run.memory_needed import require_memory
from sf.run.networks import describe_networks
from sf.run.plan import Plan, sides_of_match
from sf.run.startup.demonstrations import require_demonstrations
from sf.run.startup.describing import said_where_slow
from sf.run.startup.levels import levels_of_run
from sf.run.startup.pool import find_pool
from sf.run.startup.schedules import evolved_options, require_schedules
from sf.run.startup.search import leaves_per_group, with_search
from sf.run.startup.teachers import find_teachers, with_advice
from sf.run.tasks.groups import fewest_workers, tasks_of_groups
from sf.storage.run_dir import RunDir
from sf.system import gpu
from sf.system.arrays import available_memory
from sf.system.machine.cores import num_usable_cores, usable_cores
from sf.system.native import kernels
from sf.system.portable import resource
from sf.system.processes.fork_servers import allow_many_descriptors, descriptors_needed
from sf.system.processes.torch_runtime import resolve_bfloat16, resolve_device


def make_plan(config: Config, place: Place = ALONE_HERE) -> Plan:
    """Raises ValueError, with what to change, for whatever cannot work. place: of this trainer among the ranks."""
    if not place.is_alone:
        require_can_be_ranked(config, place)
        config = place.config_of(config)
    if config.run.serial:
        if not place.is_alone:
            raise UsageError("serial is true: a run of one process has no ranks, so start it without torchrun")
        config = config.replace(async_rl=False, num_workers=1, set_workers_cpu_affinity=False)
    sampler = config.sampler
    device = resolve_device(config.run.device)
    if device != "cpu" and not place.is_alone and place.local_size > gpu.count():
        raise UsageError(
            f"there are {place.local_size} ranks and {gpu.count()} GPUs on this machine: start as many ranks as there "
            "are GPUs, or --device cpu"
        )
    if config.evaluation.video_every_env_steps:
        with said_where_slow(f"drawing {config.run.env}"):
            require_drawable(config)
    config, spec, teams, networks = describe_networks(with_search(with_advice(config)))
    schedules = parse(config.run.anneal)
    require_schedules(config, spec, schedules)
    schedules = (*schedules, *evolved_options(config, spec))
    action = ActionSpec.of(spec.action_space)
    state_size = max(network.state_size for network in networks)
    if config.evaluation.exploitability_every_env_steps:
        with said_where_slow(f"finding the information states of {config.run.env}"):
            require_no_memory(state_size, "this run")
            information_states(config.run.env, config.environment)
    require_available(config.learner)
    if config.learner.gradient_workers and device != "cpu":
        raise UsageError(
            f"gradient_workers is {config.learner.gradient_workers}, and the learner has a GPU: leave it out, or "
            "--device cpu"
        )
    num_cores = num_usable_cores()
    num_workers = sampler.num_workers if sampler.num_workers != "auto" else max(num_cores, fewest_workers(config, spec))
    actors_per_group = sampler.num_envs_per_group * spec.num_agents
    num_together = max(1, len(teams))
    extra_slots = sampler.extra_slots if sampler.async_rl else 0
    extra_slots_per_group = -(-extra_slots // (num_workers * sampler.num_groups_per_worker))
    num_actors = num_workers * sampler.num_groups_per_worker * actors_per_group
    run_dir = RunDir.at(config.run.train_dir, config.run.experiment_name).path
    specs = [network.spec for network in networks]
    entrants, pool_roles = find_pool(config, spec, specs, run_dir, teams)
    teachers = find_teachers(config, specs, run_dir)
    require_demonstrations(config, specs, run_dir, place)
    plan = Plan(
        has_auto_sizes="auto" in (sampler.rollout, config.learner.batch_size),
        config=with_learning_rate(
            with_sizes(
                config,
                _actors_of_each_policy(config, spec, num_actors, num_together),
                state_size > 0,
                num_together,
            ),
            has_memory=state_size > 0,
            num_continuous=action.num_continuous,
        ),
        spec=spec,
        device=device,
        bfloat16=resolve_bfloat16(config.model.precision, device, has_memory=state_size > 0),
        cores=usable_cores(),
        num_cores=num_cores,
        num_workers=num_workers,
        actors_per_group=actors_per_group,
        slots_per_group=actors_per_group + num_together * -(-extra_slots_per_group // num_together),
        networks=networks,
        symmetries=find_symmetries(config, state_size),
        teams=teams,
        entrants=entrants,
        pool_roles=pool_roles,
        tasks_of_groups=tasks_of_groups(config, spec, num_workers),
        reference=find_reference(
            config.players.reference_ratings,
            played(config.run.env, config.environment.kwargs),
            entrants,
            run_dir,
            config.run.restart_behavior == "resume",
        ),
        why_no_loops=_why_no_loops(config.model.compile, device),
        schedules=schedules,
        levels=levels_of_run(config, spec) if LEVEL in spec.optional_fields else None,
        leaves_per_group=leaves_per_group(config),
        teachers=teachers,
        place=place,
    )
    if not sampler.async_rl:
        _check_rounds(plan)
    require_memory(available_memory(), plan)
    if not config.run.serial:
        allow_many_descriptors()
        _check_descriptors(plan)
    if sampler.async_rl:
        _check_lag(plan)
    return plan


def _actors_of_each_policy(config: Config, spec: EnvSpec, num_actors: int, num_together: int) -> int:
    """On average. In a match against a player that does not learn, the player has half of the sides, whose
    trajectories a learner takes only where its critic sees them."""
    num_sides = len(set(sides_of_match(config, spec)))
    share_of_players = config.players.past_share * (num_sides // 2) / num_sides
    if num_together > 1:
        share_of_players = 0.0
    return math.ceil(num_actors * (1 - share_of_players) / config.population.num_policies)


def _why_no_loops(wanted: bool | Literal["auto"], device: str) -> str | None:
    """Makes the compiled loops, so that no process of the run has to."""
    if device != "cpu" or wanted is False:
        return None
    reason = kernels.why_not()
    if reason is not None and wanted is True:
        raise UsageError(f"compile is true, but {reason}: change that, or take auto")
    return reason


def _check_rounds(plan: Plan) -> None:
    taken, collected = plan.config.slots_per_iteration, plan.num_actors
    if taken % collected != 0 and collected % taken != 0:
        rollout = plan.config.rollout
        example = "auto" if plan.has_auto_sizes else collected * rollout
        raise UsageError(
            f"async_rl is false, the sampler collects {collected * rollout} samples a round (workers x envs x agents x "
            f"rollout) and the learner takes {taken * rollout} at once (batch_size x num_batches_per_epoch): one must "
            f"be a multiple of the other, for example --batch_size {example}"
        )


def _check_lag(plan: Plan) -> None:
    """Where the sampler is the faster one, all slots wait for the learner. If its policy gets too far ahead of them, it
    trains on nothing, for as long as the run goes on."""
    limit, steps = plan.config.sampler.max_policy_lag, plan.config.learner.steps_per_iteration
    waiting = math.ceil(plan.num_slots / (plan.config.slots_per_iteration * plan.num_policies))
    if waiting * steps > limit:
        sizes = "--batch_size auto" if plan.config.sampler.rollout == "auto" else "--rollout auto --batch_size auto"
        raise UsageError(
            f"max_policy_lag is {limit}: the data of {waiting} iterations can wait for the learner, whose policy is "
            f"{steps} versions on after each (num_batches_per_epoch x num_epochs), so all of it could be too old to "
            f"train on; take larger iterations ({sizes}), or --max_policy_lag {waiting * steps}"
        )


def _check_descriptors(plan: Plan) -> None:
    needed = descriptors_needed(plan.num_workers, plan.num_policy_workers)
    _, granted = resource.getrlimit(resource.RLIMIT_NOFILE)
    if granted != resource.RLIM_INFINITY and needed > granted:
        raise UsageError(
            f"the run needs about {needed} file descriptors and the system grants {granted}: lower --num_workers or "
            "--num_policies, or raise the hard limit (ulimit -Hn)"
        )
