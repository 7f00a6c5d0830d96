"""The network. Importing the package registers the built-in encoders and the model."""

from sf.model import encoders
from sf.model.actor_critic import ActorCritic, StepOutput, UnrollOutput
from sf.model.distributions import ActionDistribution
from sf.model.inference import inference_model, load_flat, num_weights, write_flat
from sf.model.registry import build_model, register_encoder, register_model

__all__ = [
    "ActionDistribution",
    "ActorCritic",
    "StepOutput",
    "UnrollOutput",
    "build_model",
    "encoders",
    "inference_model",
    "load_flat",
    "num_weights",
    "register_encoder",
    "register_model",
    "write_flat",
]
