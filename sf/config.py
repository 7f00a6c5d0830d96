"""The configuration: frozen dataclasses, one a component. Every field is a command-line flag of the same name.

The types of the fields are checked by `sf.envs.field_types`, whichever way a value came; rules that concern one field
or one component where the fields live (`__post_init__`); rules across components in `Config`. Derived numbers are
properties. A broken rule is a ValueError that begins with the flag and its value, and says what to change.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from sf.envs.field_types import check_fields, checked
from sf.envs.options import EnvOptions
from sf.play.config import EvaluationConfig
from sf.population.config import PopulationConfig
from sf.watch_config import WatchConfig

_ENDLESS = 10_000_000_000  # steps, or seconds


def _require(rule: bool, message: str) -> None:
    if not rule:
        raise ValueError(message)


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
    """Stop after so many environment steps (decisions of all policies together; frames are steps x frameskip)."""

    train_for_env_frames: int | None = None
    """Stop after so many frames of the simulator."""

    train_for_seconds: float = float(_ENDLESS)
    """Stop after so many seconds of wall time."""

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
    """The reported mean return is the mean of so many latest episodes."""

    def __post_init__(self) -> None:
        check_fields(self)
        _require(self.env != "", "env is empty: name an environment, for example --env doom_basic")
        _require(
            self.experiment is None or ("/" not in self.experiment and self.experiment not in ("", ".", "..")),
            f"experiment is {self.experiment!r}: it is the name of one folder in train_dir, so without '/'",
        )
        _require(self.init_from != "", "init_from is empty: name a checkpoint or a run, such as train_dir/doom_basic")
        _require(0 <= self.seed < 2**32, f"seed is {self.seed}: it must be from 0 to {2**32 - 1}")
        _require(self.train_for_env_steps > 0, f"train_for_env_steps is {self.train_for_env_steps}: at least 1")
        _require(self.train_for_seconds > 0, f"train_for_seconds is {self.train_for_seconds}: it must be above 0")
        _require(
            self.train_for_env_frames is None or self.train_for_env_frames > 0,
            f"train_for_env_frames is {self.train_for_env_frames}: at least 1",
        )
        _require(self.save_every_sec > 0, f"save_every_sec is {self.save_every_sec}: it must be above 0")
        _require(self.keep_checkpoints >= 2, f"keep_checkpoints is {self.keep_checkpoints}: at least 2")
        _require(self.save_milestones_sec >= 0, f"save_milestones_sec is {self.save_milestones_sec}: 0 or greater")
        _require(self.summaries_every_sec > 0, f"summaries_every_sec is {self.summaries_every_sec}: above 0")
        _require(self.stats_avg > 0, f"stats_avg is {self.stats_avg}: at least 1 episode")

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
class SamplerConfig:
    """Rollout workers, policy workers, and how much data is under way."""

    num_workers: int | Literal["auto"] = "auto"
    """Rollout worker processes. auto: one for each core that the process may use."""

    num_envs_per_worker: int = 8
    """Environments of one rollout worker, split into worker_num_splits groups."""

    worker_num_splits: int = 2
    """Groups of a worker: with 2, one is stepped while the actions of the other are computed (double buffering)."""

    policy_workers_per_policy: int = 1
    """Processes that run the network for the rollout workers."""

    rollout: int = 32
    """Steps of one trajectory (T)."""

    async_rl: bool = True
    """Sample while the learner trains. false: collect, train, collect; bit-reproducible from the seed on CPU."""

    max_policy_lag: int = 1000
    """Samples that are more policy versions old than this are not trained on (they are counted)."""

    extra_slots: int = 0
    """Trajectories that may wait for the learner beyond one of each actor and the two batches in the learner, rounded
    up to the same number for each group of environments. More smooth an uneven flow, and raise the lag."""

    set_workers_cpu_affinity: bool = True
    """Pin each rollout worker, and the simulators it starts, to one core: of those that other runs use least."""

    def __post_init__(self) -> None:
        check_fields(self)
        _require(
            self.num_workers == "auto" or self.num_workers >= 1,
            f"num_workers is {self.num_workers}: at least 1, or auto",
        )
        _require(self.num_envs_per_worker >= 1, f"num_envs_per_worker is {self.num_envs_per_worker}: at least 1")
        _require(self.worker_num_splits >= 1, f"worker_num_splits is {self.worker_num_splits}: at least 1")
        _require(
            self.num_envs_per_worker % self.worker_num_splits == 0,
            f"num_envs_per_worker is {self.num_envs_per_worker}: it must be a multiple of worker_num_splits "
            f"({self.worker_num_splits}), since the groups are of one size",
        )
        _require(
            self.policy_workers_per_policy >= 1,
            f"policy_workers_per_policy is {self.policy_workers_per_policy}: at least 1",
        )
        _require(
            self.async_rl or self.policy_workers_per_policy == 1,
            f"policy_workers_per_policy is {self.policy_workers_per_policy}: synchronous training uses 1",
        )
        _require(self.rollout >= 1, f"rollout is {self.rollout}: at least 1 step")
        _require(self.max_policy_lag >= 0, f"max_policy_lag is {self.max_policy_lag}: 0 or greater")
        _require(self.extra_slots >= 0, f"extra_slots is {self.extra_slots}: 0 or greater")

    @property
    def num_envs_per_group(self) -> int:
        return self.num_envs_per_worker // self.worker_num_splits


@dataclass(frozen=True)
class ModelConfig:
    """The network: an encoder for each kind of observation, a core, and the heads."""

    model: str = "actor_critic"
    """A whole model: a name registered with sf.register_model, or module:Name."""

    encoder: str = "auto"
    """auto (simple for images, resnet for those below 36 pixels, mlp for vectors, several inputs concatenated), simple,
    atari, resnet, mlp, a name registered with sf.register_encoder, or module:Name."""

    encoder_mlp_layers: tuple[int, ...] = (512, 512)
    """Widths of the layers of the vector encoder."""

    encoder_conv_mlp_layers: tuple[int, ...] = (512,)
    """Widths of the linear layers after the convolutions."""

    core: Literal["none", "gru", "lstm"] = "none"
    """The recurrent core between the encoder and the heads."""

    rnn_size: int = 512
    """Width of the recurrent state."""

    nonlinearity: Literal["elu", "relu", "tanh"] = "elu"
    """Activation of the encoders."""

    share_critic: bool = True
    """Actor and critic share encoder and core. false: a network each."""

    normalize_input: bool = True
    """Normalise observations by running statistics, which the learner alone updates: vectors to mean 0 and standard
    deviation 1, images to mean 0 for every pixel with one scale for all. false: images are divided by 255."""

    normalize_returns: bool = False
    """Train the critic on value targets that are normalised by running statistics."""

    initial_stddev: float = 1.0
    """Standard deviation of continuous actions at the start (in units of half the action range)."""

    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    """auto: bfloat16 matrix products with float32 weights where the hardware has them."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("encoder_mlp_layers", "encoder_conv_mlp_layers"):
            widths = getattr(self, name)
            _require(all(w >= 1 for w in widths), f"{name} is {widths}: every width must be at least 1")
        _require(self.rnn_size >= 1, f"rnn_size is {self.rnn_size}: at least 1")
        _require(self.initial_stddev > 0, f"initial_stddev is {self.initial_stddev}: it must be above 0")


@dataclass(frozen=True)
class LearnerConfig:
    """Losses, optimiser and batches."""

    batch_size: int = 1024
    """Samples of one minibatch: one step of the optimiser. A multiple of rollout."""

    num_batches_per_epoch: int = 1
    """Minibatches in the data that is taken at once; num_epochs passes are made over it."""

    num_epochs: int = 1
    """Passes over the data of one iteration."""

    shuffle_steps: bool = False
    """Cut that data into single steps in random order, with value targets and advantages of one pass at the start, as
    most implementations of PPO do. false: into whole trajectories, whose targets are new in each step of the optimiser.
    A network with memory has those in any case."""

    gamma: float = 0.99
    """Discount of a step."""

    with_vtrace: bool = True
    """V-trace value targets and advantages (off-policy correction). false: GAE."""

    vtrace_rho: float = 1.0
    """V-trace: truncation of the importance weight of the temporal difference (rho_bar)."""

    vtrace_c: float = 1.0
    """V-trace: truncation of the trace coefficients (c_bar)."""

    gae_lambda: float = 0.95
    """Exponential weight of longer returns: GAE, and the lambda of V-trace's traces."""

    with_ppo_clip: bool = True
    """PPO's clipped surrogate objective. false: the policy gradient with V-trace's weights (as IMPALA)."""

    ppo_clip_ratio: float = 0.1
    """The ratio of target to behaviour policy (or proximal policy, see decoupled_clip) is clipped to
    [1 / (1 + x), 1 + x]."""

    decoupled_clip: bool = True
    """In an iteration of several optimiser steps, clip around the policy at its start, not around the older behaviour
    policy, and weigh samples by the ratio of the two, at most vtrace_rho (Hilton et al. 2022, "decoupled
    PPO")."""

    ppo_clip_value: float = 1.0
    """The value may move this far from the behaviour value for free of the clipped loss; 0 turns the clip off."""

    normalize_advantages: bool = True
    """Advantages of a minibatch are shifted and scaled to mean 0 and standard deviation 1."""

    value_loss_coeff: float = 0.5
    """Weight of the value loss."""

    exploration_loss_coeff: float = 0.003
    """Weight of the entropy bonus."""

    reward_scale: float = 1.0
    """Rewards are multiplied by this."""

    reward_clip: float = 1000.0
    """Rewards are then clipped to [-x, x]."""

    learning_rate: float = 1e-4
    """Of Adam, at the start."""

    lr_schedule: Literal["constant", "linear", "kl_adaptive"] = "constant"
    """linear: down to 0 at the end of the run: with train_for_env_steps or train_for_env_frames by the steps of all
    policies together, else by train_for_seconds. kl_adaptive: changed after each iteration, so that the KL divergence
    of the policy after it from the one before stays near lr_schedule_kl_threshold."""

    lr_schedule_kl_threshold: float = 0.008
    """kl_adaptive: the KL divergence that is aimed at, in nats."""

    lr_adaptive_min: float = 1e-6
    """kl_adaptive: the lowest learning rate."""

    lr_adaptive_max: float = 1e-2
    """kl_adaptive: the highest learning rate."""

    adam_eps: float = 1e-6
    """Adam's epsilon."""

    adam_beta1: float = 0.9
    """Adam's decay of the first moment."""

    adam_beta2: float = 0.999
    """Adam's decay of the second moment."""

    max_grad_norm: float = 4.0
    """The global norm of the gradients is clipped to this; 0 turns the clip off."""

    learner_threads: int | None = None
    """CPU threads of the learner. Default: half of the cores that the process may use (threads that wait for each
    other on cores that the sampler uses, too, lose more than they gain); 4 with a GPU."""

    def __post_init__(self) -> None:
        check_fields(self)
        _require(self.batch_size >= 1, f"batch_size is {self.batch_size}: at least 1")
        _require(
            self.num_batches_per_epoch >= 1,
            f"num_batches_per_epoch is {self.num_batches_per_epoch}: at least 1",
        )
        _require(self.num_epochs >= 1, f"num_epochs is {self.num_epochs}: at least 1")
        for name in ("gamma", "gae_lambda"):
            _require(0.0 <= getattr(self, name) <= 1.0, f"{name} is {getattr(self, name)}: from 0 to 1")
        for name in ("adam_beta1", "adam_beta2"):
            _require(0.0 <= getattr(self, name) < 1.0, f"{name} is {getattr(self, name)}: from 0 to below 1")
        for name in (
            "vtrace_rho",
            "vtrace_c",
            "ppo_clip_ratio",
            "reward_scale",
            "reward_clip",
            "learning_rate",
            "lr_schedule_kl_threshold",
            "lr_adaptive_min",
            "adam_eps",
        ):
            _require(getattr(self, name) > 0, f"{name} is {getattr(self, name)}: it must be above 0")
        for name in ("ppo_clip_value", "value_loss_coeff", "exploration_loss_coeff", "max_grad_norm"):
            _require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}: it must be 0 or greater")
        _require(
            self.vtrace_rho >= self.vtrace_c,
            f"vtrace_rho is {self.vtrace_rho}, vtrace_c {self.vtrace_c}: V-trace needs rho >= c",
        )
        _require(
            self.lr_adaptive_min <= self.lr_adaptive_max,
            f"lr_adaptive_min is {self.lr_adaptive_min}: it must not exceed lr_adaptive_max {self.lr_adaptive_max}",
        )
        _require(
            self.learner_threads is None or self.learner_threads >= 1,
            f"learner_threads is {self.learner_threads}: at least 1",
        )

    @property
    def steps_per_iteration(self) -> int:
        """Optimiser steps on the data that is taken at once."""
        return self.num_batches_per_epoch * self.num_epochs


@dataclass(frozen=True)
class SupervisionConfig:
    """What happens when something fails."""

    worker_timeout_s: float = 120.0
    """A process that makes no progress for so many seconds, though it has work, is killed and replaced."""

    max_restarts: int = 5
    """The run ends when one process has died more often than this within restart_window_s seconds."""

    restart_window_s: float = 300.0
    """Seconds over which max_restarts counts."""

    max_skipped_updates: int = 10
    """An update whose loss or gradients are not finite is skipped. After so many in a row, on_divergence says what
    happens."""

    on_divergence: Literal["rollback", "stop"] = "rollback"
    """rollback: go back to the last checkpoint, or to a new network before the first, with a lower learning rate; env
    steps count on. After 3 of these without a checkpoint in between the run ends. stop: it ends at once."""

    rollback_lr_factor: float = 0.5
    """rollback: the learning rate is multiplied by this, and no schedule raises it above that again."""

    def __post_init__(self) -> None:
        check_fields(self)
        _require(self.worker_timeout_s > 0, f"worker_timeout_s is {self.worker_timeout_s}: it must be above 0")
        _require(self.max_restarts >= 0, f"max_restarts is {self.max_restarts}: 0 or greater")
        _require(self.restart_window_s > 0, f"restart_window_s is {self.restart_window_s}: it must be above 0")
        _require(self.max_skipped_updates >= 1, f"max_skipped_updates is {self.max_skipped_updates}: at least 1")
        _require(
            0.0 < self.rollback_lr_factor <= 1.0,
            f"rollback_lr_factor is {self.rollback_lr_factor}: above 0, and at most 1",
        )


@dataclass(frozen=True)
class Config:
    """Everything a run depends on."""

    run: RunConfig = field(default_factory=RunConfig)
    environment: EnvOptions = field(default_factory=EnvOptions)
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    population: PopulationConfig = field(default_factory=PopulationConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    supervision: SupervisionConfig = field(default_factory=SupervisionConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)

    def __post_init__(self) -> None:
        check_fields(self)
        batch, rollout = self.learner.batch_size, self.sampler.rollout
        _require(
            batch % rollout == 0,
            f"batch_size is {batch}: it must be a multiple of rollout ({rollout}), for example "
            f"{max(1, round(batch / rollout)) * rollout}",
        )
        steps = self.learner.steps_per_iteration
        _require(
            not self.sampler.async_rl or self.sampler.max_policy_lag >= steps,
            f"max_policy_lag is {self.sampler.max_policy_lag}: the policy is {steps} versions on after each iteration "
            "(num_batches_per_epoch x num_epochs), so all asynchronous data would be too old; raise it",
        )
        _require(
            self.learner.lr_schedule != "linear" or self.run.ends_by_steps or self.run.ends_by_seconds,
            "lr_schedule is linear: it needs train_for_env_steps, train_for_env_frames or train_for_seconds to know "
            "where the end is",
        )
        _require(
            not (self.learner.lr_schedule == "kl_adaptive" and steps == 1 and not self.sampler.async_rl),
            "lr_schedule is kl_adaptive: the only step of a synchronous iteration sees no KL divergence, so raise "
            "num_epochs or num_batches_per_epoch, or take constant or linear",
        )
        _require(
            self.population.num_policies == 1 or self.sampler.async_rl,
            f"num_policies is {self.population.num_policies}: synchronous training is of one policy, so leave async_rl "
            "true",
        )
        _require(
            not (self.population.with_pbt and self.learner.lr_schedule == "kl_adaptive"),
            "lr_schedule is kl_adaptive: with_pbt changes the learning rate itself, so take constant or linear",
        )

    @property
    def slots_per_batch(self) -> int:
        """Trajectories of one minibatch (B)."""
        return self.learner.batch_size // self.sampler.rollout

    @property
    def slots_per_iteration(self) -> int:
        """Trajectories that the learner takes at once."""
        return self.slots_per_batch * self.learner.num_batches_per_epoch

    def flat(self) -> dict[str, Any]:
        """Every field by its flag name."""
        out: dict[str, Any] = {}
        for part in dataclasses.fields(self):
            out.update(dataclasses.asdict(getattr(self, part.name)))
        return out

    def replace(self, **flags: Any) -> Config:
        """A copy with some flags changed, by flag name. Raises ValueError for an unknown name, or a value that cannot
        be."""
        flags = checked(Config, flags)
        parts: dict[str, Any] = {}
        for part in dataclasses.fields(self):
            component = getattr(self, part.name)
            own = {f.name: flags[f.name] for f in dataclasses.fields(component) if f.name in flags}
            parts[part.name] = dataclasses.replace(component, **own) if own else component
        return Config(**parts)
