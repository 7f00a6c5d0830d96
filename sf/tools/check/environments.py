"""Probes of environments: Doom and Atari render a frame, and the environment of the run can be made."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from sf import envs
from sf.envs import ActionSpec, StepResult
from sf.envs.errors import EnvError
from sf.envs.spaces.observations import obs_arrays
from sf.tools.check.probe import Needs, ProbeError

_STEPS = 4


def doom(needs: Needs) -> str:
    return _play("doom_basic")


def atari(needs: Needs) -> str:
    return _play("atari_pong")


def _play(env: str) -> str:
    group = envs.make_group(env, 1, envs.EnvOptions(), seed=0, first_env_idx=0)
    try:
        rows = obs_arrays(group.spec.obs_space, 1)
        obs, result = {key: list(array) for key, array in rows.items()}, StepResult.empty(1)
        action = ActionSpec.of(group.spec.action_space)
        group.reset(obs)
        for _ in range(_STEPS):
            nothing = np.zeros((1, len(action.discrete_sizes)), np.int32)
            group.step(nothing, np.zeros((1, action.num_continuous), np.float32), obs, result)
        (image,) = (array[0] for array in rows.values() if array.ndim == 4)
        if image.min() == image.max():
            raise ProbeError(f"{env} renders a frame of one colour")
        return f"{env}: {_STEPS} steps, frames of {' x '.join(map(str, image.shape))}"
    finally:
        group.close()


def plan(needs: Needs) -> str:
    from sf.run.planning import make_plan  # noqa: PLC0415  it imports torch, which Doom and Atari do without

    assert needs.config is not None
    try:
        with redirect_stdout(StringIO()):  # what environments have to say is said by the run
            found = make_plan(needs.config)
    except (ValueError, EnvError) as error:
        raise ProbeError(str(error)) from None
    env = needs.config.run.env
    return f"{env}: {found.num_workers} workers, {found.num_actors} agents, {found.num_weights:,} weights a policy"
