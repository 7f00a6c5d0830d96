"""From a configuration to the numbers of a run: what is allocated, how many processes, and whether it can work.

Everything that can be known to be wrong is found here, before any process starts.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from sf import gpu
from sf.arrays import available_memory
from sf.config import Config
from sf.config.auto_learning_rate import with_learning_rate
from sf.config.auto_sizes import with_sizes
from sf.envs import ActionSpec, EnvSpec
from sf.envs.clock import CLOCK, with_clock
from sf.envs.errors import UsageError
from sf.envs.spaces.symmetries import Symmetry
from sf.evaluation.episode_video import require_drawable
from sf.learner.batches.symmetric_images import find_symmetries
from sf.learner.gradients.share import MOST_THREADS
from sf.learner.optimizer.optimizer import require_available
from sf.machine.cores import PinnedCores, num_usable_cores, usable_cores
from sf.metrics.advice import steps_before_update
from sf.model.inference import num_weights
from sf.model.registry import build_model
from sf.native import kernels
from sf.play.exploitability import require_exploitability
from sf.players.entrants import Entrant
from sf.processes.fork_servers import allow_many_descriptors, descriptors_needed
from sf.processes.torch_runtime import resolve_bfloat16, resolve_device
from sf.ranks.place import ALONE_HERE, Place, require_can_be_ranked
from sf.run import memory_needed
from sf.run.beginning.describing import describe, said_where_slow
from sf.run.beginning.entrants import entrants_of, reference_of

MODEL = "actor_critic"  # ours


@dataclass(frozen=True)
class Plan:
    """The derived numbers of a run."""

    config: Config  # with numbers for what is auto in the flags, see `sf.config.auto_sizes`, `auto_learning_rate`
    has_auto_sizes: bool  # such numbers are among them
    spec: EnvSpec
    device: str  # "cpu" or "cuda"
    bfloat16: bool
    cores: tuple[int, ...]  # that this process may run on
    num_cores: int  # that it can keep busy: fewer where a container has a CPU quota
    num_workers: int
    actors_per_group: int
    slots_per_group: int
    num_weights: int  # floats of all parameters and buffers
    state_size: int  # floats of the recurrent state of an actor
    weight_shapes: dict[str, tuple[int, ...]]  # by name
    symmetries: Sequence[Symmetry]  # that data is augmented by
    entrants: Mapping[str, Entrant]  # players that are in the pool from the start
    reference: Mapping[str, float]  # ratings at which some of them are held; empty: that is left to the record
    why_no_loops: str | None  # compiled ones that were asked for, as a clause
    place: Place = ALONE_HERE  # of this trainer among the ranks

    @property
    def resolved(self) -> dict[str, Any]:
        """What became of flags that may be auto, and that is the same for all learners of a policy."""
        learner = self.config.learner
        return {
            "device": self.device,
            "bfloat16 (--precision)": self.bfloat16,
            "rollout": self.config.rollout,
            "batch_size": learner.batch_size,
        }

    @property
    def num_groups(self) -> int:
        return self.num_workers * self.config.sampler.num_groups_per_worker

    @property
    def num_actors(self) -> int:
        return self.num_groups * self.actors_per_group

    @property
    def num_slots(self) -> int:
        return self.num_groups * self.slots_per_group

    @property
    def learner_threads(self) -> int:
        chosen = self.config.learner.learner_threads
        cores = self.num_cores // (2 * self.num_policies) if self.device == "cpu" else self.num_cores
        return chosen or min(MOST_THREADS, max(1, cores))

    @property
    def num_gradient_workers(self) -> int:
        """Of each learner: as many as there are cores for."""
        chosen = self.config.learner.gradient_workers
        if chosen is not None or self.device != "cpu" or not self.config.sampler.async_rl or not self.place.is_alone:
            return chosen or 0
        return max(0, self.num_cores // (self.num_policies * self.learner_threads) - 1)

    @property
    def policy_threads(self) -> int:
        """CPU threads of a policy worker: its cores are the rollout workers' too.

        With a GPU it gathers observations, which is a copy in memory; what one core copies in a second (some 10 GB) is
        less than a GPU takes.
        """
        return 1 if self.device == "cpu" else max(1, min(4, len(self.cores) // 8))

    @property
    def num_policies(self) -> int:
        return self.config.population.num_policies

    @property
    def num_mains(self) -> int:
        """Policies that are no exploiters."""
        return self.num_policies - self.config.players.exploiters

    @property
    def targets(self) -> Mapping[int, int]:
        """The policy that each exploiter is after, by its own."""
        mains = self.num_mains
        return {policy_id: (policy_id - mains) % mains for policy_id in range(mains, self.num_policies)}

    @property
    def num_policy_workers(self) -> int:
        return self.num_policies * self.config.sampler.policy_workers_per_policy

    @property
    def num_seats(self) -> int:
        """For players that do not learn: the same number for each policy that is no exploiter."""
        players = self.config.players
        return players.num_seats * self.num_mains if players.with_players else 0

    @property
    def num_steps_before_update(self) -> int:
        """Env steps that are sampled before the first update of every learner."""
        needed = self.config.slots_per_iteration * self.num_policies
        return steps_before_update(needed, self.num_actors, self.config.rollout)

    @property
    def num_evaluators(self) -> int:
        evaluation = self.config.evaluation
        every = (
            evaluation.eval_every_env_steps,
            evaluation.video_every_env_steps,
            evaluation.exploitability_every_env_steps,
        )
        return 1 if any(every) else 0

    @property
    def target_env_steps(self) -> int:
        """Of all policies together, at which the run ends."""
        return self.config.run.target_env_steps(self.spec.frameskip)

    def device_of(self, policy_id: int) -> str:
        """ "cpu", or "cuda:N": policies and ranks are spread over the GPUs, with their learners and policy workers. The
        ranks of a policy never share one."""
        number = policy_id * self.place.local_size + self.place.local_rank
        return self.device if self.device == "cpu" else f"cuda:{number % gpu.count()}"

    def pin_workers(self) -> PinnedCores:
        """Choose the cores of the rollout workers; for as long as the result lives, other runs spread around them.

        With a quota it is the number of cores that is limited: the kernel chooses them, since others have theirs, too.
        """
        if not self.config.sampler.set_workers_cpu_affinity or self.num_cores < len(self.cores):
            return PinnedCores.nowhere(self.num_workers)
        return PinnedCores(self.cores, self.num_workers)


def make_plan(config: Config, place: Place = ALONE_HERE) -> Plan:
    """Raises ValueError, with what to change, for whatever cannot work. place: of this trainer among the ranks."""
    if not place.is_alone:
        require_can_be_ranked(config, place)
        config = place.config_of(config)
    sampler = config.sampler
    device = resolve_device(config.run.device)
    if device != "cpu" and not place.is_alone and place.local_size > gpu.count():
        raise UsageError(
            f"there are {place.local_size} ranks and {gpu.count()} GPUs on this machine: start as many ranks as there "
            "are GPUs, or --device cpu"
        )
    spec = describe(config.run.env, config.environment)
    if config.evaluation.video_every_env_steps:
        with said_where_slow(f"drawing {config.run.env}"):
            require_drawable(config)
    config = _with_clock_chosen(config, spec)
    if config.model.critic_clock:
        spec = with_clock(spec)
    action = ActionSpec.of(spec.action_space)
    with torch.device("meta"):
        model = build_model(config.model, spec.obs_space, action)
    if config.evaluation.exploitability_every_env_steps:
        with said_where_slow(f"finding the information states of {config.run.env}"):
            require_exploitability(config.run.env, config.environment, model.state_size)
    require_available(config.learner)
    if config.learner.gradient_workers and device != "cpu":
        raise UsageError(
            f"gradient_workers is {config.learner.gradient_workers}, and the learner has a GPU: leave it out, or "
            "--device cpu"
        )
    num_cores = num_usable_cores()
    num_workers = num_cores if sampler.num_workers == "auto" else sampler.num_workers
    actors_per_group = sampler.num_envs_per_group * spec.num_agents
    extra_slots = sampler.extra_slots if sampler.async_rl else 0
    num_actors = num_workers * sampler.num_groups_per_worker * actors_per_group
    entrants = entrants_of(config, spec)
    plan = Plan(
        has_auto_sizes="auto" in (sampler.rollout, config.learner.batch_size),
        config=with_learning_rate(
            with_sizes(config, _actors_of_each_policy(config, spec, num_actors), has_memory=model.state_size > 0),
            has_memory=model.state_size > 0,
            num_continuous=action.num_continuous,
        ),
        spec=spec,
        device=device,
        bfloat16=resolve_bfloat16(config.model.precision, device, has_memory=model.state_size > 0),
        cores=usable_cores(),
        num_cores=num_cores,
        num_workers=num_workers,
        actors_per_group=actors_per_group,
        slots_per_group=actors_per_group + -(-extra_slots // (num_workers * sampler.num_groups_per_worker)),
        num_weights=num_weights(model),
        state_size=model.state_size,
        weight_shapes={name: tuple(tensor.shape) for name, tensor in model.state_dict().items()},
        symmetries=find_symmetries(config, model.state_size),
        entrants=entrants,
        reference=reference_of(config, entrants),
        why_no_loops=_why_no_loops(config.model.compile, device),
        place=place,
    )
    if not sampler.async_rl:
        _check_rounds(plan)
    memory_needed.require(available_memory(), plan)
    allow_many_descriptors()
    _check_descriptors(plan)
    if sampler.async_rl:
        _check_lag(plan)
    return plan


def _with_clock_chosen(config: Config, spec: EnvSpec) -> Config:
    """`critic_clock` as true or false. Somebody's own network knows of no clock."""
    if CLOCK in spec.obs_space.spaces:
        raise UsageError(f"{config.run.env} has an observation called {CLOCK!r}, which is the critic's: rename it")
    bootstrap, clock = config.learner.bootstrap_truncated, config.model.critic_clock
    is_own = config.model.model != MODEL
    if clock is True and is_own:
        raise UsageError(f"critic_clock is true, and the network {config.model.model} has none: leave it out")
    if clock == "auto":
        clock = not is_own and (spec.has_own_time_limit if bootstrap == "auto" else not bootstrap)
    return config.replace(critic_clock=clock)


def _actors_of_each_policy(config: Config, spec: EnvSpec, num_actors: int) -> int:
    """On average. In a match against a player that does not learn, the player has half of the agents."""
    share_of_players = config.players.past_share * (spec.num_agents // 2) / spec.num_agents
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
