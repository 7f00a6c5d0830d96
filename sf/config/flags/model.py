"""Flags of the network."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields, require

_WIDEST = 1_000_000  # beyond all memory: sizes of its products are still numbers of 64 bits


def is_hidden(key: str, patterns: Sequence[str]) -> bool:
    """Returns whether an observation is one of those that `critic_obs` or `teacher_obs` keep from the policy."""
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)


@dataclass(frozen=True)
class ModelConfig:
    """The network: an encoder for each observation, a core, and the heads."""

    model: str = "actor_critic"
    """Network: actor_critic, a name registered with sf.register_model, or module:Name for one of your own."""

    encoder: str = "auto"
    """Encoder: simple, atari, small or resnet (images), symbols (grids of codes and small boards), planes (boards of
    real numbers), map (larger ones), mlp (vectors), a name registered with sf.register_encoder, or module:Name. auto:
    by the kind of each observation, resnet for images below 36 pixels; the features of several observations are
    concatenated."""

    encoder_mlp_layers: tuple[int, ...] = (512, 512)
    """Layer widths of the mlp encoder."""

    encoder_conv_mlp_layers: tuple[int, ...] = (512,)
    """Widths of the linear layers after the convolutions."""

    encoder_mlp_residual: int = 0
    """Make this many of encoder_mlp_layers, counted from the last, residual blocks. They add something to what goes in,
    and begin as the identity: so layers can be added to a run (docs/surgery.md)."""

    encoder_conv_mlp_residual: int = 0
    """The same for encoder_conv_mlp_layers."""

    pad_images: bool = True
    """Pad images, and what each convolution of simple and atari makes of them, with zeros where they would not look at
    the pixels at the right and at the bottom: of 64x64 pixels the last 12 of each row and column. false: the networks
    of the papers, as in the presets of Doom."""

    any_planes: bool = True
    """Take integers of rank 3 with two values for the planes of a board, whatever their type. false: only uint8 and
    bool, and others for vectors."""

    float_planes: bool = True
    """Take bounded floats of rank 3, at most 10 in size and at least 3 cells a side, for the planes of a board. false:
    for vectors."""

    core: Literal["none", "gru", "lstm", "mingru", "transformer"] = "none"
    """Recurrent core between encoder and heads. Use one if a single observation does not show the whole state. mingru
    trains fastest, and decides what to keep by the observation alone. transformer (GTrXL) looks back at the last steps
    one by one, and takes much more time and memory. See docs/cores.md."""

    rnn_size: int = 512
    """Width of the core. For the transformer a multiple of core_heads; 128 or 256 are usual."""

    attention_window: int = 128
    """Steps that the transformer sees, with the present one. Each actor keeps the keys and values of all of them for
    each layer, so the recurrent state grows with it."""

    core_layers: int = 2
    """Layers of the transformer. Each looks back by attention_window, so information can come from further away."""

    core_heads: int = 4
    """Attention heads of each layer of the transformer."""

    core_skip: bool = False
    """The heads read what goes into the recurrent core beside what comes out of it: so a core can be added to a run
    (docs/surgery.md)."""

    nonlinearity: Literal["elu", "relu", "leaky_relu", "tanh"] = "elu"
    """Activation function of the encoders."""

    layer_norm: bool = False
    """Normalise what goes into each activation of the built-in encoders' linear layers over its features (layer
    normalisation, Ba et al. 2016, equation 3). Lyle et al. 2023 ("Understanding plasticity in neural networks") find
    that it keeps networks able to learn while their targets change. Convolutions and recurrent cores stay as they are.
    """

    share_critic: bool = True
    """Actor and critic share encoder and core. false: separate networks."""

    critic: Literal["own", "team", "all", "state"] = "own"
    """What the value function sees. own: what the agent sees. team, all: beside that, what its team or all agents of
    the environment see, as MAPPO's central critic does. state: beside that, what the environment's state() returns. The
    policy never sees it. See docs/multi_agent.md."""

    mixer: Literal["none", "sum", "monotonic"] = "none"
    """How the value of a team comes of those of its agents, where they are paid together. none: each agent has a value
    of its own. sum: their sum (VDN). monotonic: a mixture that never falls as one of them rises (QMIX)."""

    critic_obs: tuple[str, ...] = ()
    """Keys of a Dict observation that the critic alone sees, as patterns such as privileged_* (asymmetric actor-critic,
    Pinto et al. 2018)."""

    teacher_obs: tuple[str, ...] = ()
    """Keys of a Dict observation that the teacher alone sees (--teacher), as patterns such as privileged_*."""

    critic_clock: bool | Literal["auto"] = "auto"
    """Show the critic, but not the actor, how many steps the episode has lasted: of a task with a time limit of its own
    the value depends on it. auto: where truncated episodes count as ended (bootstrap_truncated). See
    docs/time_limits.md."""

    critic_clock_residual: bool = False
    """The clock adds something to the critic's features by a residual block, which begins as the identity: so a clock
    can be added to a run (docs/surgery.md). false: a layer joins both."""

    normalize_input: bool = True
    """Normalise observations by running statistics: vectors to mean 0 and standard deviation 1, images to mean 0 per
    pixel with one scale for all pixels; codes stay as they are. false: only divide images by 255. The network then
    rounds other numbers to its precision, so large times or coordinates lose digits."""

    normalize_returns: bool = False
    """Train the critic on value targets normalised by running statistics. Use it if returns are far from a scale of
    1 to 100."""

    normalize_returns_by: Literal["all", "task"] = "all"
    """With normalize_returns in a run on several tasks. all: by the same statistics. task: by those of each task, with
    a value for each, and advantages in the same scale (PopArt, Hessel et al. 2019). See docs/many_tasks.md."""

    show_task: bool = False
    """In a run on several tasks (--env tasks:FILE), show the network the number of the task, one-hot. Use it if an
    observation does not tell which task it is of."""

    value_scale: Literal["linear", "symlog"] = "linear"
    """What the critic predicts. linear: returns, or normalised ones with normalize_returns. symlog: their symmetric
    logarithm sign(x) ln(1 + abs(x) / s) (DreamerV3, Hafner et al. 2023), in units of s, the geometric mean of their
    sizes, in the place of normalize_returns, for returns of many magnitudes. Where returns are noisy, it predicts less
    than their mean, as a mean of logarithms does. ppo_clip_value is in this scale."""

    initial_stddev: float | Literal["auto"] = "auto"
    """Initial standard deviation of continuous actions, in units of half the action range. auto: 1 over the square root
    of the number of continuous actions, so that the noise of all of them together is as long as that of one would be.
    How much it matters: Andrychowicz et al. 2021 ("What matters for on-policy deep actor-critic methods?"), section
    3.2."""

    precision: Literal["auto", "recurrent", "bfloat16", "float32"] = "auto"
    """Precision of matrix products; weights are float32. auto: bfloat16 where the hardware has it. recurrent: the same
    where the network has a recurrent core, whose products take most of its time, and else float32."""

    compile: bool | Literal["auto"] = "auto"
    """Compile, where networks run on a CPU: loops for activations and recurrent cores before the run (two seconds, once
    for each machine), and a program each for the policy workers' step and, with shuffle_steps, the learner's. The
    learner's is made beside a run that has lasted half a minute, the policy workers' after a minute (half a minute of a
    core each, once for each network; not with --async_rl false). auto: where the machine has a C++ compiler. On a GPU
    the kernels of these steps are recorded, and queued at once (CUDA graphs). false: PyTorch's operations alone."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("encoder_mlp_layers", "encoder_conv_mlp_layers"):
            widths = getattr(self, name)
            require(all(w >= 1 for w in widths), f"{name} is {widths}: every width must be at least 1")
            require(all(w <= _WIDEST for w in widths), f"{name} is {widths}: every width must be at most {_WIDEST}")
            require(
                not self.layer_norm or all(w >= 2 for w in widths),
                f"layer_norm is true, {name} {widths}: every width must be at least 2, as a single number is 0 once it "
                "is normalised",
            )
            residual = name.replace("layers", "residual")
            num = getattr(self, residual)
            require(
                num == 0 or (0 < num < len(widths) and len(set(widths[-num - 1 :])) == 1),
                f"{residual} is {num}, {name} {widths}: it must be at least 0 and below the number of layers, and each "
                "residual block must have the width of the layer before it",
            )
        require(
            not (self.value_scale == "symlog" and self.normalize_returns),
            "value_scale is symlog, which takes the place of normalize_returns: set normalize_returns to false",
        )
        require(
            self.normalize_returns_by == "all" or self.normalize_returns,
            f"normalize_returns_by is {self.normalize_returns_by}: it needs --normalize_returns true",
        )
        require(
            all(self.hidden_obs),
            "critic_obs or teacher_obs has an empty pattern: name keys of the observation, for example privileged_*",
        )
        for name, least in (("rnn_size", 1), ("attention_window", 2), ("core_layers", 1), ("core_heads", 1)):
            require_range(self, name, least=least, most=_WIDEST)
        require(
            self.core != "transformer" or self.rnn_size % self.core_heads == 0,
            f"rnn_size is {self.rnn_size}, and core_heads {self.core_heads}: the transformer gives each head an equal "
            "part of its width, so take a multiple",
        )
        require_range(self, "initial_stddev", above=0)

    @property
    def hidden_obs(self) -> tuple[str, ...]:
        """Returns the patterns of observations that the policy never sees."""
        return (*self.critic_obs, *self.teacher_obs)

    @property
    def has_central_critic(self) -> bool:
        """Whether values depend on what the policy does not see, so that the learner alone computes them."""
        return self.critic != "own" or self.mixer != "none" or bool(self.critic_obs)
