"""The numbers of a run: what is allocated, and how many processes there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sf.config import Config
from sf.config.roles import Roles, roles_of
from sf.config.schedules import Schedule
from sf.envs import EnvSpec
from sf.envs.spaces.symmetries import Symmetry
from sf.envs.teams import sides_of
from sf.league.players.entrants import Entrant
from sf.league.players.pool_roles import PoolRoles
from sf.learner.gradients.share import MOST_THREADS
from sf.model.inference import num_weights
from sf.ranks.place import ALONE_HERE, Place
from sf.run.startup.teachers import Taught
from sf.system import gpu
from sf.system.machine.cores import PinnedCores


def sides_of_match(config: Config, spec: EnvSpec) -> tuple[int, ...]:
    """Returns the side of each agent in the matches of a run, [A]: its team, or itself if teams are mixed."""
    return tuple(range(spec.num_agents)) if config.players.mix_teams else sides_of(spec)


@dataclass(frozen=True)
class PolicyNetwork:
    """Describes the network of a policy."""

    spec: EnvSpec  # what the policy sees and does: that of the run, or a part of it
    num_weights: int  # floats of all parameters and buffers
    state_size: int  # floats of the recurrent state of an actor
    weight_shapes: Mapping[str, tuple[int, ...]]  # by name
    num_beside: int = 0  # floats that the learner has beside it, and keeps in checkpoints

    @classmethod
    def of(cls, spec: EnvSpec, model: Any) -> PolicyNetwork:
        """model: as `sf.model.building.build_model` returns it."""
        shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        return cls(spec, num_weights(model), model.state_size, shapes)


@dataclass(frozen=True)
class Plan:
    """The derived numbers of a run."""

    config: Config  # with numbers for what is auto in the flags, see `sf.config.auto_values`
    has_auto_sizes: bool  # such numbers are among them
    spec: EnvSpec  # of all agents, for the rows
    device: str  # "cpu" or "cuda"
    bfloat16: bool
    cores: tuple[int, ...]  # that this process may run on
    num_cores: int  # that it can keep busy: fewer where a container has a CPU quota
    num_workers: int
    actors_per_group: int
    slots_per_group: int
    networks: Sequence[PolicyNetwork]  # [P]
    symmetries: Sequence[Symmetry]  # that data is augmented by
    teams: Sequence[int]  # [A] of the agents of an environment, which the critic sees at once; empty: one by one
    entrants: Mapping[str, Entrant]  # players that are in the pool from the start
    pool_roles: PoolRoles
    reference: Mapping[str, float]  # ratings at which some of them are held; empty: that is left to the record
    tasks_of_groups: np.ndarray  # [G] the task of each group at the start, by its number; [0] without several tasks
    why_no_loops: str | None  # compiled ones that were asked for, as a clause
    schedules: tuple[Schedule, ...] = ()  # of --anneal
    levels: range | None = None  # that learners choose from
    leaves_per_group: int = 0  # of searches, in a request; 0: policies choose the actions by themselves
    teachers: Sequence[Taught] = ()
    place: Place = ALONE_HERE  # of this trainer among the ranks

    @property
    def num_buffered_games(self) -> int:
        """Returns how many games the buffer of the learner has at most; 0 without one."""
        return self.config.search.buffer_games if self.config.learner.algorithm == "search" else 0

    @property
    def bytes_of_games(self) -> int:
        """Returns the memory of that buffer."""
        return self.config.search.buffer_mib * 2**20 if self.num_buffered_games else 0

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
    def num_weights(self) -> int:
        """Returns the number of floats of the largest network."""
        return max(network.num_weights for network in self.networks)

    @property
    def state_size(self) -> int:
        """Returns the number of floats of the largest recurrent state."""
        return max(network.state_size for network in self.networks)

    @property
    def num_together(self) -> int:
        """Slots that stay together: one for each agent of an environment, where the critic sees them at once."""
        return max(1, len(self.teams))

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
        """The policy that each exploiter is after, by its own: one of another role, where there are any."""
        mains, found = self.num_mains, {}
        for policy_id in range(mains, self.num_policies):
            others = [each for each in range(mains) if not any({each, policy_id} <= {*own} for own in self.roles)]
            found[policy_id] = others[(policy_id - mains) % len(others)]
        return found

    @property
    def sides(self) -> tuple[int, ...]:
        """Returns the side of each agent in a match, [A], from 0: those of one side are drawn together."""
        return sides_of_match(self.config, self.spec)

    @property
    def roles(self) -> Roles:
        """Returns the policies that may play each agent, see `sf.config.roles`."""
        return roles_of(self.config.population, self.spec, self.config.run.env)

    @property
    def num_policy_workers(self) -> int:
        return self.num_policies * self.config.sampler.policy_workers_per_policy

    @property
    def num_seats(self) -> int:
        """For players that do not learn: the same number for each policy that is no exploiter, and each role that it
        meets."""
        if not self.config.players.with_players:
            return 0
        num_each = self.pool_roles.most_of_one_role() or self.config.players.seats
        return num_each * self.num_mains * self.pool_roles.num_opposed

    @property
    def num_steps_before_update(self) -> int:
        """Env steps that are sampled before the first update of every learner.

        All actors finish their trajectories at about the same time, unless their workers start one after the other.
        """
        needed = self.config.slots_per_iteration * self.num_policies
        if self.num_workers <= self.num_cores:
            needed = -(-needed // self.num_actors) * self.num_actors
        return needed * self.config.rollout

    @property
    def num_evaluators(self) -> int:
        of = self.config.evaluation
        return int(any((of.eval_every_env_steps, of.video_every_env_steps, of.exploitability_every_env_steps)))

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
