"""The probe of compiled networks, which leaves the programs of a run for it to begin with."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from sf.run.planning import make_plan
from sf.system.messages import said_to
from sf.tools.bench.programs import are_made, make_programs
from sf.tools.check.probe import Needs, ProbeError


def compiled(needs: Needs) -> str:
    """Make the programs of the run's network. Raises ProbeError where one cannot be made."""
    assert needs.config is not None
    with redirect_stdout(StringIO()):  # what environments have to say is said by the run
        plan = make_plan(needs.config)
    if not are_made(plan):
        return "none: such a run has only its loops compiled, or nothing"
    said: list[str] = []
    with said_to(said.append):
        are_there = make_programs(plan)
    if not are_there:
        raise ProbeError(said[-1])
    return "the programs of this network are there, and runs begin with them"
