"""The record of OpenSpiel's games."""

from __future__ import annotations

from sf.envs.added.agent_index import AGENT_INDEX
from sf.envs.errors import UsageError
from sf.envs.family import Entry, Family
from sf.envs.spaces.actions import ACTION_MASK

PREFIX = "openspiel:"
SHOWN = frozenset({"observation", ACTION_MASK, AGENT_INDEX})
"""A search can show a policy these observations of a position."""

INSTALL = "pip install 'open_spiel>=2,<3' (Python 3.11 or later)"
_TO_WRAP = "give a class of your own around OpenSpiel's game, as module:Name"


def _find(env_id: str) -> Entry:
    try:
        from sf.envs.openspiel import group, symmetries  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UsageError(f"env {env_id!r}: {error}: {INSTALL}") from error
    return Entry(
        group.describe, group.make_group, group.make_rendered_group, to_wrap=_TO_WRAP, symmetries=symmetries.find
    )


def _env_ids() -> list[str]:
    try:
        from sf.envs.openspiel import games  # noqa: PLC0415  an extra
    except ImportError:
        return []
    return games.playable_ids()


OPENSPIEL = Family(
    name="openspiel",
    about="games of OpenSpiel, docs/openspiel.md; their parameters are --env_kwargs",
    pattern=f"{PREFIX}.*",
    find=_find,
    env_ids=_env_ids,
    package="pyspiel",
    install=INSTALL,
)
