"""Names the field of a step that intrinsic advantages are in, and says which runs have it."""

from __future__ import annotations

from dataclasses import replace

from sf.config import Config
from sf.envs import EnvSpec, UsageError

NONE = "none"
ADVANTAGE = "intrinsic_advantage"


def with_intrinsic_rows(config: Config, spec: EnvSpec) -> EnvSpec:
    """Returns the spec with room for intrinsic advantages where the learner gives them. Raises UsageError where it
    cannot."""
    name = config.learner.intrinsic
    if name == NONE:
        return spec
    if config.model.mixer != "none":
        raise UsageError(f"intrinsic is {name}, and with a mixer advantages are a team's: leave one of both out")
    return replace(spec, optional_fields=(*spec.optional_fields, ADVANTAGE))
