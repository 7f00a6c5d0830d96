"""The run that the flags name: whether its environment can be made, and what it needs is there."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from sf.check.probe import Needs, ProbeError
from sf.envs.errors import EnvError
from sf.run.planning import make_plan


def plan(needs: Needs) -> str:
    assert needs.config is not None
    try:
        with redirect_stdout(StringIO()):  # what environments have to say is said by the run
            found = make_plan(needs.config)
    except (ValueError, EnvError) as error:
        raise ProbeError(str(error)) from None
    env = needs.config.run.env
    return f"{env}: {found.num_workers} workers, {found.num_actors} agents, {found.num_weights:,} weights a policy"
