"""Environments in groups, ready to be stepped by a rollout worker. Nothing here knows of the trainer.

`envs.group` says what a group is, `envs.registry` finds one by the name of its environment.
"""

from envs.actions import ActionSpec
from envs.group import EnvGroup, EnvSpec, Episode, ObsRows, RenderedGroup, ShapedGroup, StepResult
from envs.options import EnvOptions
from envs.registry import (
    describe,
    env_ids,
    make_group,
    make_rendered_group,
    register,
    register_env,
    register_parallel_env,
    register_vector_env,
)

__all__ = [
    "ActionSpec",
    "EnvGroup",
    "EnvOptions",
    "EnvSpec",
    "Episode",
    "ObsRows",
    "RenderedGroup",
    "ShapedGroup",
    "StepResult",
    "describe",
    "env_ids",
    "make_group",
    "make_rendered_group",
    "register",
    "register_env",
    "register_parallel_env",
    "register_vector_env",
]
