"""Flags of a run as a whole: what is trained, for how long, where it is kept, and what happens when something fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.envs.field_types import check_fields, require

_ENDLESS = 10_000_000_000  # steps, or seconds


@dataclass(frozen=True)
class RunConfig:
    """What to train, for how long, and where the results go."""

    env: str = "CartPole-v1"
    """Environment: doom_*, atari_*, toy_*, doom:my.cfg, any Gymnasium id, envpool:NAME, pettingzoo:FAMILY/NAME, or
    module:Name for what a module of yours has or registers."""

    config: str | None = None
    """Preset to start from: a name in configs/ or the path of a YAML file. Flags win over it. Default: the one that is
    named like the environment or its family; else image, continuous or vector, by what the environment sees and
    does."""

    experiment: str | None = None
    """Name of the run directory inside train_dir. Default: the name of the environment."""

    train_dir: str = "train_dir"
    """Directory that holds the run directories."""

    restart_behavior: Literal["resume", "restart", "overwrite"] = "resume"
    """An existing run: resume goes on with it, restart moves it aside and begins anew, overwrite
    deletes it once the new run is under way."""

    init_from: str | None = None
    """A new run begins with the weights and normalisers of this checkpoint, or of the latest one of this run directory,
    with a fresh optimiser and all counters at 0. Of a run with several policies, each goes to the policy of its number.
    A run that is resumed goes on from its own."""

    trust: bool = False
    """true: a run that is resumed, or the file of --config, may name environments, encoders and models of its own,
    which are code that is then run. Needed where you have not trained with them before: docs/reliability.md."""

    seed: int = 0
    """Seeds the environments, the sampling of actions, and the weights."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where networks run. auto takes a GPU where there is one."""

    train_for_env_steps: int = _ENDLESS
    """Stop after this many environment steps (decisions of all policies together; frames are steps x frameskip)."""

    train_for_env_frames: int | None = None
    """Stop after this many frames of the simulator."""

    train_for_seconds: float = float(_ENDLESS)
    """Stop after this many seconds of wall time."""

    stop_at_return: float | None = None
    """Stop when the mean return of every policy, over stats_avg finished episodes, is at least this."""

    save_every_sec: float = 120.0
    """Seconds between checkpoints. One more is written at the end and at a stop."""

    keep_checkpoints: int = 2
    """How many of the latest checkpoints stay on disk, at least 2."""

    save_milestones_sec: float = 0.0
    """Seconds of the run between checkpoints that are kept for good, in checkpoints/milestones; 0: none are."""

    summaries_every_sec: float = 5.0
    """Seconds between two records of metrics.jsonl and TensorBoard."""

    stats_avg: int = 100
    """The reported mean return is the mean of this many latest episodes."""

    def __post_init__(self) -> None:
        check_fields(self)
        require(self.env != "", "env is empty: name an environment, for example --env doom_basic")
        require(
            self.experiment is None or ("/" not in self.experiment and self.experiment not in ("", ".", "..")),
            f"experiment is {self.experiment!r}: it is the name of one folder in train_dir, so without '/'",
        )
        require(self.init_from != "", "init_from is empty: name a checkpoint or a run, such as train_dir/doom_basic")
        require(0 <= self.seed < 2**32, f"seed is {self.seed}: it must be from 0 to {2**32 - 1}")
        require(self.train_for_env_steps > 0, f"train_for_env_steps is {self.train_for_env_steps}: at least 1")
        require(self.train_for_seconds > 0, f"train_for_seconds is {self.train_for_seconds}: it must be above 0")
        require(
            self.train_for_env_frames is None or self.train_for_env_frames > 0,
            f"train_for_env_frames is {self.train_for_env_frames}: at least 1",
        )
        require(self.save_every_sec > 0, f"save_every_sec is {self.save_every_sec}: it must be above 0")
        require(self.keep_checkpoints >= 2, f"keep_checkpoints is {self.keep_checkpoints}: at least 2")
        require(self.save_milestones_sec >= 0, f"save_milestones_sec is {self.save_milestones_sec}: 0 or greater")
        require(self.summaries_every_sec > 0, f"summaries_every_sec is {self.summaries_every_sec}: above 0")
        require(self.stats_avg > 0, f"stats_avg is {self.stats_avg}: at least 1 episode")

    @property
    def ends_by_steps(self) -> bool:
        return self.train_for_env_frames is not None or self.train_for_env_steps < _ENDLESS

    @property
    def ends_by_seconds(self) -> bool:
        return self.train_for_seconds < _ENDLESS

    def target_env_steps(self, frameskip: int) -> int:
        """Env steps at which the run ends."""
        if self.train_for_env_frames is None:
            return self.train_for_env_steps
        return min(self.train_for_env_steps, -(-self.train_for_env_frames // frameskip))

    @property
    def experiment_name(self) -> str:
        return self.experiment or self.env.replace("/", "_").replace(":", "_")


@dataclass(frozen=True)
class SupervisionConfig:
    """What happens when something fails."""

    worker_timeout_s: float = 120.0
    """A process that makes no progress for this many seconds, though it has work, is killed and replaced."""

    max_restarts: int = 5
    """The run ends when one process has died more often than this within restart_window_s seconds."""

    restart_window_s: float = 300.0
    """Seconds over which max_restarts counts."""

    max_skipped_updates: int = 10
    """An update whose loss or gradients are not finite is skipped. After this many in a row, on_divergence says what
    happens."""

    on_divergence: Literal["rollback", "stop"] = "rollback"
    """rollback: go back to the last checkpoint, or to a new network before the first, with a lower learning rate; env
    steps count on. After 3 of these without a checkpoint in between the run ends. stop: it ends at once."""

    rollback_lr_factor: float = 0.5
    """rollback: the learning rate is multiplied by this, and no schedule raises it above that again."""

    def __post_init__(self) -> None:
        check_fields(self)
        require(self.worker_timeout_s > 0, f"worker_timeout_s is {self.worker_timeout_s}: it must be above 0")
        require(self.max_restarts >= 0, f"max_restarts is {self.max_restarts}: 0 or greater")
        require(self.restart_window_s > 0, f"restart_window_s is {self.restart_window_s}: it must be above 0")
        require(self.max_skipped_updates >= 1, f"max_skipped_updates is {self.max_skipped_updates}: at least 1")
        require(
            0.0 < self.rollback_lr_factor <= 1.0,
            f"rollback_lr_factor is {self.rollback_lr_factor}: above 0, and at most 1",
        )
