"""Flags of a run as a whole: what is trained, for how long, where it is kept, and what happens when something fails."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields, require

_ENDLESS = 10_000_000_000  # steps, or seconds: what stood for no end in the files of earlier runs
_LONGEST_NAME = 240  # bytes of a run's: that of an earlier run beside it ends with .overwritten1, and 255 is the limit


@dataclass(frozen=True)
class RunConfig:
    """What to train, for how long, and where the results go."""

    env: str = "CartPole-v1"
    """Environment to train on: doom_*, atari_*, rts_*, toy_*, doom:my.cfg, a Gymnasium id, envpool:NAME,
    openspiel:NAME, pettingzoo:FAMILY/NAME, or module:Name for one of your own. sf-envs lists them."""

    config: str | None = None
    """Preset to start from: a name in configs/ or the path of a YAML file. Flags override it. Default: the preset
    named after the environment or its family; else image, image_continuous, small_image, small_image_continuous,
    symbols, board, continuous or vector, by the observation and action spaces."""

    experiment: str | None = None
    """Name of the run directory inside train_dir. Set it to keep several runs of one environment. Default: the name
    of the environment."""

    train_dir: str = "train_dir"
    """Directory that holds the run directories."""

    restart_behavior: Literal["resume", "restart", "overwrite"] = "resume"
    """What to do with an existing run. resume: continue it. restart: move it aside and start over. overwrite: delete
    it once the new run is under way."""

    init_from: str | None = None
    """Start a new run from the weights and normalisers of a checkpoint, a run's latest checkpoint, zoo/NAME or
    hf:USER/NAME. The network is that of the policy; the optimiser is fresh and all counters start at 0. With several
    policies, policy i starts from policy i of that run. A resumed run ignores it."""

    surgery: bool = False
    """Allow the run of init_from to have had other observations, actions or layers: what it has learned is moved into
    the new network, with the optimiser's moments. See docs/surgery.md."""

    new_choice_probability: float = 0.01
    """Surgery: the probability of all new choices of a head together, in the mean over what the policy meets."""

    inexact: bool = False
    """Surgery: allow what changes the function of the network, such as observations that are removed."""

    trust: bool = False
    """Allow a resumed run or the --config file to name environments, encoders and models of its own (module:Name).
    Loading them runs their code. Needed only if you have not trained with them before: docs/reliability.md."""

    seed: int = 0
    """Seed of the environments, of action sampling and of the initial weights."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of the networks. auto: a GPU if there is one."""

    serial: bool = False
    """Run everything in one process, one part after the other, so that a debugger stops anywhere: breakpoint() works in
    an environment, in a network and in a loss. The weights are those of --async_rl false with one worker. Also the way
    to train on macOS and Windows."""

    train_for_env_steps: int | None = None
    """Stop after this many env steps: decisions, summed over all policies. Frames are env steps x frameskip. None: not
    by env steps. Without any end, a run trains until Ctrl-C. 0, with bc_steps: clone demonstrations, and nothing
    else."""

    train_for_env_frames: int | None = None
    """Stop after this many simulator frames. Replaces a train_for_env_steps of the preset, and is replaced by one."""

    train_for_seconds: float | None = None
    """Stop after this many seconds of wall time. None: not by time."""

    anneal: tuple[str, ...] = ()
    """Values that follow training, each NAME=FROM:TO@STEPS (linearly, in the first STEPS env steps of a policy),
    NAME=FROM:TO@METRIC:X (one step towards TO whenever the mean of METRIC over the last stats_avg episodes that began
    at the present value reaches X), or NAME=LOW..HIGH (drawn for each episode). NAME is env.OPTION, of an environment
    that declares the option as schedulable, or gamma, gae_lambda, reward_scale,
    ppo_clip_ratio, value_loss_coeff, exploration_loss_coeff, learning_rate, past_share or team_spirit."""

    stop_at_return: float | None = None
    """Stop once the mean return of every policy over its latest stats_avg episodes reaches this, and each actor has
    ended one."""

    save_every_sec: float = 120.0
    """Seconds between checkpoints. One more is written when the run ends or is stopped."""

    keep_checkpoints: int = 2
    """Number of latest checkpoints to keep, at least 2."""

    save_milestones_sec: float = 0.0
    """Seconds between milestones: checkpoints in checkpoints/milestones that are never deleted. 0: none."""

    summaries_every_sec: float = 5.0
    """Seconds between records in metrics.jsonl and TensorBoard."""

    stats_avg: int = 100
    """Number of latest episodes that the reported mean return is taken over: as many of each actor, at least one."""

    def __post_init__(self) -> None:
        check_fields(self)
        require(self.env != "", "env is empty: name an environment, for example --env doom_basic")
        require(
            self.experiment is None or ("/" not in self.experiment and self.experiment not in ("", ".", "..")),
            f"experiment is {self.experiment!r}: it is the name of one folder in train_dir, so without '/'",
        )
        name = self.experiment or ""
        require("\0" not in name, f"experiment is {name!r}: no name of a folder has a NUL byte")
        num_bytes = len(os.fsencode(name))
        require(
            num_bytes <= _LONGEST_NAME,
            f"experiment is {num_bytes} bytes long ({name[:20]}...): it must be at most {_LONGEST_NAME}, since what "
            "is beside the run has longer names",
        )
        require(self.train_dir != "", "train_dir is empty: name a folder, or . for the working directory")
        require(self.init_from != "", "init_from is empty: name a checkpoint or a run, such as train_dir/doom_basic")
        require(
            not self.surgery or self.init_from is not None,
            "surgery is true, but init_from names nothing to operate on: name a run, or go on with one by sf-surgery",
        )
        require_range(self, "new_choice_probability", above=0, below=1)
        require(0 <= self.seed < 2**32, f"seed is {self.seed}: it must be from 0 to {2**32 - 1}")
        require_range(self, "train_for_env_steps", least=0)
        require_range(self, "train_for_env_frames", "stats_avg", least=1)
        require_range(self, "train_for_seconds", "save_every_sec", "summaries_every_sec", above=0)
        require_range(self, "keep_checkpoints", least=2)
        require_range(self, "save_milestones_sec", least=0)

    @property
    def ends_by_steps(self) -> bool:
        return self.target_env_steps(frameskip=1) < _ENDLESS

    @property
    def ends_by_seconds(self) -> bool:
        return self.most_seconds < math.inf

    @property
    def most_seconds(self) -> float:
        """Wall time after which the run ends; infinity where it does not end by time."""
        seconds = self.train_for_seconds
        return math.inf if seconds is None or seconds >= _ENDLESS else seconds

    def target_env_steps(self, frameskip: int) -> int:
        """Env steps at which the run ends; more than any run has where it does not end by them."""
        ends = [_ENDLESS if self.train_for_env_steps is None else self.train_for_env_steps]
        if self.train_for_env_frames is not None:
            ends.append(-(-self.train_for_env_frames // frameskip))
        return min(ends)

    @property
    def experiment_name(self) -> str:
        return self.experiment or self.env.replace("/", "_").replace(":", "_")


@dataclass(frozen=True)
class SupervisionConfig:
    """What happens when something fails."""

    worker_timeout_s: float = 120.0
    """Kill and replace a process that has work but makes no progress for this many seconds. Raise it if one
    environment step or one minibatch can take longer."""

    max_restarts: int = 5
    """End the run when one process dies more than this many times within restart_window_s."""

    restart_window_s: float = 300.0
    """Window of max_restarts, in seconds."""

    max_skipped_updates: int = 10
    """An update with a non-finite loss or gradient is skipped. After this many in a row, on_divergence applies."""

    on_divergence: Literal["rollback", "stop"] = "rollback"
    """rollback: go back to the last checkpoint (before the first one: to a new network) with a lower learning rate;
    env steps keep counting. After 3 rollbacks without a checkpoint in between, the run ends. stop: end the run at
    once."""

    rollback_lr_factor: float = 0.5
    """Each rollback multiplies the learning rate by this. No schedule raises the rate above the result."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_range(self, "worker_timeout_s", "restart_window_s", above=0)
        require_range(self, "max_restarts", least=0)
        require_range(self, "max_skipped_updates", least=1)
        require_range(self, "rollback_lr_factor", above=0, most=1)


@dataclass(frozen=True)
class RanksConfig:
    """Several learners that train one policy, each with workers of its own: docs/ranks.md."""

    num_learners: int = 1
    """Learners of one policy on this machine, which average their gradients. Each has its own workers, its share of
    the cores and, where there are GPUs, one of them. The batch of an optimiser step is batch_size of each. On several
    machines, start them with torchrun instead."""

    compress_gradients: bool = False
    """Several learners: send gradients as bfloat16, half as many bytes. For slow networks."""

    rank_timeout_s: float = 30.0
    """Several learners: end the run once one of them has not been heard of for this many seconds, so that torchrun can
    start it again with those that are left. Shorter interruptions of the network are waited for."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_range(self, "num_learners", least=1)
        require_range(self, "rank_timeout_s", least=5)
