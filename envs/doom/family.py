"""The record of Doom."""

from __future__ import annotations

from pathlib import Path

from sf.envs.doom.options import DoomOptions
from sf.envs.family import Entry, Family

_TO_WRAP = "name a scenario as Gymnasium has it, for example vizdoom.gymnasium_wrapper:VizdoomBasic-v1"


def _find(env_id: str) -> Entry | None:
    from sf.envs.doom import group  # noqa: PLC0415  the engine

    if ":" not in env_id and env_id not in group.ENV_IDS:
        return None
    return Entry(group.describe, group.make_group, group.make_rendered_group, to_wrap=_TO_WRAP)


def _env_ids() -> tuple[str, ...]:
    from sf.envs.doom import group  # noqa: PLC0415  the engine

    return group.ENV_IDS


def _code_of(env_id: str) -> str | None:
    """A .cfg file, unless it comes with ViZDoom: it can give the engine any arguments."""
    _, colon, name = env_id.partition(":")
    return str(Path(name).resolve()) if colon and ("/" in name or Path(name).exists()) else None


DOOM = Family(
    name="doom",
    about="scenarios and matches, docs/doom.md",
    pattern=r"doom_\w+|doom:.*",  # doom: is followed by the path of a .cfg file
    find=_find,
    env_ids=_env_ids,
    options=DoomOptions,
    package="vizdoom",
    code_of=_code_of,
)
