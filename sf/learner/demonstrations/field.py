"""Names the field of a step that says where an action is a demonstrator's, and says which runs have it."""

from __future__ import annotations

from dataclasses import replace

from sf.config import Config
from sf.envs import EnvSpec, UsageError

DEMONSTRATED = "demonstrated"


def with_demonstrated_rows(config: Config, spec: EnvSpec) -> EnvSpec:
    """Returns the spec with room for what demonstrations say, where there are any. Raises UsageError where the network
    sees more than they show."""
    if not config.learner.demonstrations:
        return spec
    if config.model.critic != "own" or config.model.mixer != "none":
        raise UsageError(
            "demonstrations are of one agent, and the critic sees several at once: leave out --critic and --mixer, or "
            "--demonstrations"
        )
    return replace(spec, optional_fields=(*spec.optional_fields, DEMONSTRATED))
