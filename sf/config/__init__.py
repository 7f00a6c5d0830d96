"""All flags: the parts of the configuration put together, the rules across them, and presets."""

from sf.config.config import Config
from sf.envs.options import EnvOptions
from sf.evaluation.config import EvaluationConfig
from sf.learner.config import LearnerConfig
from sf.metrics.config import WatchConfig
from sf.model.config import ModelConfig
from sf.population.config import PopulationConfig
from sf.rollout.config import SamplerConfig
from sf.run.config import RunConfig, SupervisionConfig

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
