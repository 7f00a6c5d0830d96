"""Defines all flags, checks the rules between them, reads presets, and decides which code a file may name."""

from sf.config.config import Config
from sf.config.flags.evaluation import EvaluationConfig
from sf.config.flags.learner import LearnerConfig
from sf.config.flags.model import ModelConfig
from sf.config.flags.population import PopulationConfig
from sf.config.flags.run import RunConfig, SupervisionConfig
from sf.config.flags.sampler import SamplerConfig
from sf.config.flags.watch import WatchConfig
from sf.envs.options import EnvOptions

__all__ = [
    "Config",
    "EnvOptions",
    "EvaluationConfig",
    "LearnerConfig",
    "ModelConfig",
    "PopulationConfig",
    "RunConfig",
    "SamplerConfig",
    "SupervisionConfig",
    "WatchConfig",
]
