"""Flags of the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields, require

_MOST_HELPERS = 1000  # threads, and processes, of a learner


@dataclass(frozen=True)
class LearnerConfig:
    """Losses, optimiser and batches."""

    algorithm: Literal["ppo", "search"] = "ppo"
    """search: a tree search chooses each move of self-play, and the policy learns to choose as it did (Silver et al.
    2017), without PPO's loss, V-trace and an entropy bonus; in games of OpenSpiel of one or two players that hide
    nothing."""

    search_coeff: float = 1.0
    """algorithm search: weight of the cross-entropy from the search's choices to the policy."""

    batch_size: int | Literal["auto"] = 1024
    """Samples per minibatch, that is, per optimiser step. A multiple of rollout. auto: about 256. Fewer, where so many
    minibatches make 2,048 samples or whole trajectories of all actors anyway; more, where an iteration would not hold a
    trajectory of every actor of the policy, for its data would be older than one iteration."""

    num_batches_per_epoch: int = 1
    """Minibatches per epoch. An iteration takes batch_size x num_batches_per_epoch samples."""

    num_epochs: int = 1
    """Passes over the data of an iteration. More learn more from each sample and take longer."""

    augment_by_symmetry: bool | Literal["auto"] = False
    """Train in every second epoch on an image of the data under a symmetry of the environment: a mirrored board, say,
    with mirrored actions. It is known for games of OpenSpiel on a board, where it is found by playing the game. auto:
    where one is known, the network has no recurrent state, and there are 2 epochs or more."""

    shuffle_steps: bool = False
    """Make minibatches of single steps in random order, with targets and advantages computed once per iteration, as
    most PPO implementations do. false: of whole trajectories, with targets recomputed at each optimiser step.
    Recurrent networks always use whole trajectories."""

    trajectory_priority: float = 0.0
    """Draw the trajectories of each minibatch with replacement, in proportion to their mean absolute advantage before
    the first step of the iteration, to this power (prioritized experience replay, Schaul et al. 2016, equation 1).
    0: each trajectory once an epoch. It needs several minibatches of whole trajectories."""

    trajectory_priority_beta: float = 1.0
    """trajectory_priority: how far weights in the loss make up for trajectories that are drawn more often than others
    (beta of Schaul et al. 2016, section 3.4, here the same all the time). 1: fully; 0: not at all."""

    gamma: float = 0.99
    """Discount factor per step."""

    bootstrap_truncated: bool | Literal["auto"] = "auto"
    """Whether a truncated episode counts as one that would have gone on, with the value of its final observation for
    what would have followed. false: as one that has ended. auto: false where the environment truncates it itself, true
    where the limit lies around it (max_episode_steps, TimeLimit; Doom, Atari). See docs/time_limits.md."""

    with_vtrace: bool = True
    """Value targets and advantages by V-trace, which corrects for off-policy data. false: GAE."""

    vtrace_rho: float = 1.0
    """V-trace: truncation of the importance weight of the temporal difference (rho_bar)."""

    vtrace_c: float = 1.0
    """V-trace: truncation of the trace coefficients (c_bar)."""

    gae_lambda: float = 0.95
    """Lambda of GAE and of V-trace's traces."""

    with_ppo_clip: bool = True
    """Optimise PPO's clipped surrogate objective. false: the policy gradient with V-trace's weights, as in IMPALA."""

    ppo_clip_ratio: float = 0.1
    """PPO's clip range: the ratio of the target policy to the behaviour policy (or to the proximal policy, see
    decoupled_clip) is clipped to [1 / (1 + x), 1 + x]."""

    decoupled_clip: bool = True
    """If an iteration has several optimiser steps, clip around the policy at its start instead of the older
    behaviour policy, and weight samples by the ratio of the two, truncated at vtrace_rho, or at 1 if that is less
    (decoupled PPO, Hilton et al. 2022)."""

    ppo_clip_value: float = 1.0
    """Clip range of the value loss around the behaviour policy's value: in standard deviations of returns with
    normalize_returns, else in units of the return. 0: no clipping."""

    normalize_advantages: bool = True
    """Normalise advantages to mean 0 and standard deviation 1."""

    normalize_advantages_over: Literal["minibatch", "iteration"] = "minibatch"
    """Whose mean and standard deviation normalize_advantages takes. minibatch: those of each minibatch (Huang et al.
    2022, "The 37 implementation details of PPO", detail 7). iteration: those of all samples of the iteration before its
    first step, which small minibatches estimate badly; this takes a pass of the network that decoupled_clip and
    shuffle_steps make in any case. Samples that are not trained on never count."""

    policy_loss_coeff: float = 1.0
    """Weight of the policy loss. 0 trains the values alone: --anneal policy_loss_coeff=0:1@100000 lets those of a
    policy that was cloned catch up before they move it."""

    value_loss_coeff: float = 0.5
    """Weight of the value loss."""

    exploration_loss_coeff: float = 0.003
    """Weight of the entropy bonus. Raise it if the policy stops exploring early."""

    exploration_loss_coeff_final: float | None = None
    """Weight of the entropy bonus at the end of a run that ends by steps or seconds: it changes linearly from
    exploration_loss_coeff at the start. Self-play comes closer to an equilibrium with a high one that falls. Default:
    exploration_loss_coeff all the time."""

    exploration_loss_coeff_extra: float = 0.0
    """Added to exploration_loss_coeff at the start of a run that ends by steps or seconds. It falls with the cube of
    what is left of the run: half of the way an eighth is left. No habit settles before the task is known, and most of
    the run is for doing it well. A run without an end has none of it, nor one where exploration_loss_coeff is 0 or
    exploration_loss_coeff_final says how it changes."""

    teacher: tuple[str, ...] = ()
    """Players that the policy is to imitate at first (kickstarting): a run, a checkpoint, zoo/NAME, self (the policy
    that --init_from begins with), module:Name, openspiel:BOT, or bot:NAME of a strategy game. Of several, each teaches
    its share of the environments. See docs/teachers.md."""

    teacher_coeff: float = 1.0
    """Weight of the divergence from the teacher. It falls to 0 in the first half of a run that ends by steps or
    seconds, unless --anneal names it. Until then kl_adaptive leaves the learning rate as it is: the policy is to move
    far."""

    teacher_on: str = "student"
    """Choose who acts while there is a teacher. student: the policy itself. teacher: the teacher. mix:P: the teacher in
    a share P of the trajectories, which falls with teacher_coeff."""

    demonstrations: tuple[str, ...] = ()
    """Minari data sets to learn from: their names on this machine, or paths. sf-record makes them. See
    docs/demonstrations.md."""

    demo_coeff: float = 1.0
    """Weight of the negative log-likelihood of what the demonstrator did, beside the loss of rewards. It falls to 0 in
    the first half of a run that ends by steps or seconds, unless --anneal names it. 0: demonstrations are for bc_steps
    alone."""

    demo_share: float = 0.25
    """Demonstrated trajectories in each minibatch, for each one of the run."""

    bc_steps: int = 0
    """Optimiser steps on demonstrations alone before the first rollout (behaviour cloning): of the policy on their
    actions, and of the values on their rewards. One episode in ten is held out, and the weights that predict these best
    are kept. They end the cloning where they get no better."""

    bc_patience: int = 10
    """End the cloning after so many looks at the held-out episodes in a row that show no better weights. There are 50
    in bc_steps."""

    intrinsic: str = "none"
    """A reward for what the policy has not seen before, beside that of the environment. rnd: the error in predicting a
    random network (Burda et al. 2018). count: 1 / sqrt(how often the same observation was seen), where it comes again.
    module:Name: one of your own. See docs/curiosity.md."""

    intrinsic_coeff: float = 0.5
    """Weight of the intrinsic advantages, whose returns have a standard deviation of 1, beside those of the
    environment."""

    intrinsic_gamma: float = 0.99
    """Discount factor of the intrinsic rewards, which go on from one episode to the next."""

    reward_scale: float = 1.0
    """Rewards are multiplied by this for the learner. Reported returns are not."""

    reward_clip: float = 0.0
    """Clip scaled rewards to [-x, x]. 0: no clipping. Larger rewards look alike to the learner then, so the run says
    which share of them it clips. Reported returns are not clipped."""

    optimizer: Literal["adam", "muon"] = "adam"
    """adam: for all weights. muon (PyTorch 2.9 or newer): Muon (Jordan et al. 2024), with a momentum of 0.95 and steps
    of the size of Adam's, for the matrices of linear layers and recurrent cores, and Adam for the rest: heads,
    convolutions, embeddings, biases and norms. It takes more time a step. A run keeps its optimiser."""

    learning_rate: float = 1e-4
    """Initial learning rate."""

    lr_schedule: Literal["constant", "linear", "cosine", "kl_adaptive", "auto"] = "constant"
    """linear: decay to 0 at the end of the run, by the env steps of all policies if these are limited, else by
    train_for_seconds. cosine: the same as half a cosine, which is higher in the first half and lower in the second
    (Loshchilov and Hutter 2017, equation 5, without restarts). kl_adaptive: after each iteration, change the rate to
    keep the KL divergence from the policy before it near lr_schedule_kl_threshold. It is the mean over the minibatches
    of the last epoch, each measured before its own step. With 4 epochs of 4 minibatches, and with more, that is about
    how far the iteration has moved the policy. With fewer steps it has moved further: one epoch of 4 minibatches about
    4.5 times as far, one of 2 minibatches 8 times, and two epochs of one minibatch 4 times. With decoupled_clip false,
    or one optimiser step an iteration, it is the divergence between the policies that acted and that is trained. auto:
    linear in a run that ends by steps or seconds, else constant."""

    lr_schedule_kl_threshold: float | Literal["auto"] = 0.008
    """kl_adaptive: target KL divergence, in nats, as lr_schedule measures it. auto: 0.008, times the square root of the
    number of continuous actions where there are several. Their divergences add up, so a threshold for one action holds
    many of them back."""

    lr_adaptive_min: float = 1e-6
    """kl_adaptive: lowest learning rate."""

    lr_adaptive_max: float | Literal["auto"] = 1e-2
    """kl_adaptive: highest learning rate. auto: twice learning_rate, or just learning_rate with a recurrent core, which
    forgets what it has learned at a higher one."""

    lr_adaptive_max_final: float | Literal["auto"] | None = None
    """kl_adaptive: highest learning rate at the end of a run that ends by steps or seconds; lr_adaptive_max falls there
    linearly, from lr_adaptive_max_hold on. auto: 0, where an iteration has at most 8,192 samples; larger ones are few,
    and what is not learned before the rate is gone stays so. Default: it does not change."""

    lr_adaptive_max_hold: float = 0.0
    """kl_adaptive: share of the run for which lr_adaptive_max stays as it is, before it falls to lr_adaptive_max_final.
    What is still being learned when the rate falls is learned more slowly."""

    lr_adaptive_advantage_share: float = 0.0
    """kl_adaptive: from this share of the standard deviation of all returns so far on, that of the advantages is worth
    a full step. Below it lr_adaptive_max and lr_schedule_kl_threshold fall with its square. Where a task is solved,
    advantages are the critic's errors, which normalize_advantages makes as large as any: a policy that follows them at
    the full rate leaves what it has learned, in a drift, or at once after a rare action. With 0, or without
    normalize_returns, all steps are full ones."""

    adam_eps: float = 1e-6
    """Adam's epsilon."""

    adam_beta1: float = 0.9
    """Adam's decay rate of the first moment."""

    adam_beta2: float = 0.999
    """Adam's decay rate of the second moment."""

    weight_decay: float = 0.0
    """Shrink all weights and biases by this share of themselves, times the learning rate, in each optimiser step
    (decoupled weight decay, Loshchilov and Hutter 2019). AlphaZero's 1e-4 is a penalty in the loss, which is weaker."""

    max_grad_norm: float = 4.0
    """Clip the global norm of the gradients to this. 0: no clipping."""

    learner_threads: int | None = None
    """CPU threads of the learner, and of each of its gradient workers. Default: half of the cores that the run may use,
    but at most 4, because an operation is not much faster with more; 4 with a GPU. A learner whose steps are compiled
    takes up to 4 where that is faster, and cores would be idle."""

    gradient_workers: int | None = None
    """Processes beside the learner that compute a part of each minibatch on cores that would be idle: on a CPU, and
    while the others wait for the learner. Default: as many as there are cores for; none with --async_rl false, where
    the parts would always be equal. With 0, compiled steps take no idle cores either."""

    ANNEALED = (
        "gamma",
        "gae_lambda",
        "reward_scale",
        "ppo_clip_ratio",
        "policy_loss_coeff",
        "value_loss_coeff",
        "exploration_loss_coeff",
        "intrinsic_coeff",
        "teacher_coeff",
        "demo_coeff",
        "search_coeff",
        "learning_rate",
    )
    """Fields that --anneal may change."""

    def __post_init__(self) -> None:
        check_fields(self)
        require_range(self, "batch_size", "num_batches_per_epoch", "num_epochs", least=1)
        require(
            self.augment_by_symmetry is not True or self.num_epochs > 1,
            f"augment_by_symmetry is true and num_epochs is {self.num_epochs}: every second epoch is for images of the "
            "data, so take 2 epochs or more, or leave it out",
        )
        require_range(self, "gamma", "gae_lambda", "lr_adaptive_advantage_share", least=0, most=1)
        require_range(self, "intrinsic_coeff", "teacher_coeff", "demo_coeff", "policy_loss_coeff", least=0)
        require_range(self, "demo_share", above=0, most=10)
        require_range(self, "bc_steps", least=0)
        require_range(self, "bc_patience", least=1)
        require(
            not self.bc_steps or bool(self.demonstrations),
            f"bc_steps is {self.bc_steps}, and there is nothing to clone: name a data set with --demonstrations",
        )
        require(
            self.teaching_share is not None,
            f"teacher_on is {self.teacher_on!r}: it may be student, teacher, or mix:P with a share P from 0 to 1",
        )
        require_range(self, "intrinsic_gamma", least=0, below=1)
        require_range(self, "trajectory_priority", "trajectory_priority_beta", least=0, most=1)
        require_range(self, "adam_beta1", "adam_beta2", "lr_adaptive_max_hold", least=0, below=1)
        require_range(
            self, "vtrace_rho", "vtrace_c", "ppo_clip_ratio", "reward_scale", "learning_rate", "search_coeff", above=0
        )
        require_range(self, "lr_adaptive_min", "lr_schedule_kl_threshold", "adam_eps", above=0)
        require_range(
            self, "ppo_clip_value", "value_loss_coeff", "max_grad_norm", "reward_clip", "weight_decay", least=0
        )
        bonus = "exploration_loss_coeff"
        require_range(self, bonus, f"{bonus}_extra", f"{bonus}_final", "lr_adaptive_max_final", least=0)
        require_range(self, "learner_threads", least=1, most=_MOST_HELPERS)
        require_range(self, "gradient_workers", least=0, most=_MOST_HELPERS)
        require(
            self.vtrace_rho >= self.vtrace_c,
            f"vtrace_rho is {self.vtrace_rho}, vtrace_c {self.vtrace_c}: V-trace needs rho >= c",
        )
        require(
            not (self.trajectory_priority and self.shuffle_steps),
            f"trajectory_priority is {self.trajectory_priority}: with shuffle_steps minibatches are of single steps, "
            "so set shuffle_steps to false, or trajectory_priority to 0",
        )
        require(
            not self.trajectory_priority or self.num_batches_per_epoch > 1,
            f"trajectory_priority is {self.trajectory_priority}: a single minibatch has all trajectories, so raise "
            "num_batches_per_epoch, or set trajectory_priority to 0",
        )
        require(
            self.lr_adaptive_max == "auto" or self.lr_adaptive_min <= self.lr_adaptive_max,
            f"lr_adaptive_min is {self.lr_adaptive_min}: it must not exceed lr_adaptive_max {self.lr_adaptive_max}",
        )

    @property
    def teaching_share(self) -> float | None:
        """Returns the share of the trajectories in which a teacher acts at first; None: `teacher_on` is wrong."""
        name, _, share = self.teacher_on.partition(":")
        if not share:
            return {"student": 0.0, "teacher": 1.0}.get(name)
        try:
            return float(share) if name == "mix" and 0.0 <= float(share) <= 1.0 else None
        except ValueError:
            return None

    @property
    def steps_per_iteration(self) -> int:
        """Optimiser steps on the data that is taken at once."""
        return self.num_batches_per_epoch * self.num_epochs
