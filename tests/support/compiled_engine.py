"""The engine of strategy games, which one of the processes that run tests compiles while the others wait."""

import functools
import os
import tempfile
from pathlib import Path

import numpy as np
from filelock import FileLock

from sf import envs
from sf.envs.group import StepResult
from sf.envs.options import EnvOptions
from sf.envs.spaces.observations import obs_arrays


@functools.cache
def compile_engine():
    """It takes half a minute, and a second where the compiled code is in numba's cache."""
    with FileLock(Path(tempfile.gettempdir()) / f"sf-tests-engine-{os.getuid()}.lock"):
        for env in ("rts_mini", "rts_flag", "rts_tower"):
            group = envs.make_group(env, 1, EnvOptions(), seed=0, first_env_idx=0)
            num_actors, num_heads = (
                group.spec.num_agents,
                len(envs.ActionSpec.of(group.spec.action_space).discrete_sizes),
            )
            obs = {key: list(rows) for key, rows in obs_arrays(group.spec.obs_space, num_actors).items()}
            group.reset(obs)
            nothing = np.zeros((num_actors, num_heads), np.int32), np.zeros((num_actors, 0), np.float32)
            group.step(*nothing, obs, StepResult.empty(num_actors))
            group.close()
