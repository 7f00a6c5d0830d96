"""Flags of the sampler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields, require


@dataclass(frozen=True)
class SamplerConfig:
    """Rollout workers, policy workers, and how much data is in flight."""

    num_workers: int | Literal["auto"] = "auto"
    """Rollout worker processes. auto: one per core that the run may use."""

    num_envs_per_worker: int = 8
    """Environments per rollout worker, split into worker_num_splits groups. More make inference batches larger and
    messages fewer, and raise the lag."""

    worker_num_splits: int | Literal["auto"] = "auto"
    """Groups of environments per worker. With 2, one group steps while the other waits for its actions (double
    buffering). auto: 2, but 1 where num_envs_per_worker is odd, since the groups are of one size."""

    policy_workers_per_policy: int = 1
    """Inference processes per policy. More can help when rollout workers wait for actions and the hardware is not
    busy."""

    rollout: int | Literal["auto"] = 32
    """Trajectory length in steps (T). A recurrent core is trained over this many steps. auto: 64, and less where an
    iteration would not hold a trajectory of every actor, but at least 16; 64 with a recurrent core. A batch_size that
    is named is divided by it, so it may differ."""

    decorrelate_episodes: bool = True
    """Cut one early episode of each environment at a random step: with a time limit all would stand at the same step of
    their episodes for ever. Only Doom, and environments that are stepped one by one, by Gymnasium's or PettingZoo's
    parallel API, of runs with one policy and without players that do not learn."""

    async_rl: bool = True
    """Sample while the learner trains. false: sample and train in turn; on CPU, the same seed then gives the same
    weights to the bit."""

    max_policy_lag: int = 1000
    """Do not train on samples that are more than this many policy versions old. train/masked_share counts them. A run
    in which so much data can wait for the learner that all of it would be older is refused."""

    extra_slots: int = 0
    """Trajectories that may wait for the learner, beyond one per actor and the two batches in the learner. Rounded
    up to the same number for each group of environments. More smooth an uneven flow of data and raise the lag."""

    task_choice: Literal["weight", "progress"] = "weight"
    """In a run on several tasks (--env tasks:FILE), how groups of environments are shared out. weight: by the weights
    in the file, for the whole run. progress: half of them by the weights, the other half where the mean return changes
    most. See docs/many_tasks.md."""

    level_choice: Literal["uniform", "plr"] = "uniform"
    """Choose how the level of each episode is drawn, in an environment with `levels = N`. uniform: all are equally
    likely. plr: by what the policy has to learn in each (prioritised level replay). See docs/curricula.md."""

    plr_temperature: float = 0.1
    """With --level_choice plr, the level with the n-th highest score is drawn in proportion to
    n^(-1/plr_temperature)."""

    plr_staleness: float = 0.1
    """With --level_choice plr, the share of draws that go by how long ago a level was played instead."""

    queues: Literal["pipes", "faster_fifo"] = "pipes"
    """How processes tell each other of their data. pipes: of the kernel, which any process may die at. faster_fifo: of
    the package of that name (pip install '.[faster-fifo]'); a process that is killed inside of a queue ends the run."""

    set_workers_cpu_affinity: bool = True
    """Pin each rollout worker and its simulators to one core, preferring cores that other runs use least."""

    def __post_init__(self) -> None:
        check_fields(self)
        names = ("num_workers", "num_envs_per_worker", "worker_num_splits", "policy_workers_per_policy", "rollout")
        require_range(self, *names, least=1)
        require_range(self, "max_policy_lag", "extra_slots", least=0)
        require_range(self, "plr_temperature", least=0.01)
        require_range(self, "plr_staleness", least=0.0, most=1.0)
        require(
            self.num_envs_per_worker % self.num_groups_per_worker == 0,
            f"num_envs_per_worker is {self.num_envs_per_worker}: it must be a multiple of worker_num_splits "
            f"({self.worker_num_splits}), since the groups are of one size",
        )
        require(
            self.async_rl or self.task_choice == "weight",
            "task_choice is progress: it depends on when episodes end, and synchronous training is reproducible, so "
            "take weight, or leave async_rl true",
        )
        require(
            self.async_rl or self.policy_workers_per_policy == 1,
            f"policy_workers_per_policy is {self.policy_workers_per_policy}: synchronous training uses 1",
        )

    @property
    def num_groups_per_worker(self) -> int:
        if self.worker_num_splits == "auto":
            return 1 if self.num_envs_per_worker % 2 else 2
        return self.worker_num_splits

    @property
    def num_envs_per_group(self) -> int:
        return self.num_envs_per_worker // self.num_groups_per_worker
