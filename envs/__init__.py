"""Provides environments, in groups that are stepped together. Nothing here knows of the trainer.

`sf.envs.group` says what a group is, `sf.envs.registry` finds one by the name of its environment.
"""

if __name__ == "envs":  # from the root of a clone: its classes would be others than those of sf.envs
    raise ImportError("the package is called sf.envs: use `from sf import envs` or `from sf.envs import ...`")

from sf.envs.custom.registered import register, register_env, register_parallel_env, register_vector_env
from sf.envs.errors import EnvError, UsageError
from sf.envs.group import CuttableGroup, EnvGroup, EnvSpec, Episode, ObsRows, RenderedGroup, ShapedGroup, StepResult
from sf.envs.groups.parallel import ParallelEnv
from sf.envs.groups.turns import TurnEnv
from sf.envs.options import EnvOptions
from sf.envs.registry import (
    as_evaluated,
    describe,
    env_ids,
    flags_for_training,
    make_group,
    make_rendered_group,
    require_name,
    symmetries,
)
from sf.envs.spaces.actions import ActionSpec
from sf.envs.spaces.planes import Planes

__all__ = [
    "ActionSpec",
    "CuttableGroup",
    "EnvError",
    "EnvGroup",
    "EnvOptions",
    "EnvSpec",
    "Episode",
    "ObsRows",
    "ParallelEnv",
    "Planes",
    "RenderedGroup",
    "ShapedGroup",
    "StepResult",
    "TurnEnv",
    "UsageError",
    "as_evaluated",
    "describe",
    "env_ids",
    "flags_for_training",
    "make_group",
    "make_rendered_group",
    "register",
    "register_env",
    "register_parallel_env",
    "register_vector_env",
    "require_name",
    "symmetries",
]
