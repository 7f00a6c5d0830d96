"""Flags of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sf.envs.field_types import check_fields, require


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
            require(all(w >= 1 for w in widths), f"{name} is {widths}: every width must be at least 1")
        require(self.rnn_size >= 1, f"rnn_size is {self.rnn_size}: at least 1")
        require(self.initial_stddev > 0, f"initial_stddev is {self.initial_stddev}: it must be above 0")
