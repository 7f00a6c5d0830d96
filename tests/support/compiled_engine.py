"""The engine of strategy games, which one of the processes that run tests compiles while the others wait."""

import functools
import os
import tempfile
from pathlib import Path

from filelock import FileLock
from group_driver import play

from sf import envs
from sf.envs.options import EnvOptions


@functools.cache
def compile_engine():
    """It takes half a minute, and a second where the compiled code is in numba's cache."""
    with FileLock(Path(tempfile.gettempdir()) / f"sf-tests-engine-{os.getuid()}.lock"):
        for env in ("rts_mini", "rts_flag", "rts_tower"):
            play(envs.make_group(env, 1, EnvOptions(), seed=0, first_env_idx=0), 1)
