"""The record of the strategy games."""

from __future__ import annotations

from sf.envs.errors import UsageError
from sf.envs.family import Entry, Family

INSTALL = "pip install 'numba>=0.61,<1'"
_TO_WRAP = "wrap sf.envs.rts:RtsEnv in a function of your own, as module:Name"
NAMES = ("rts_mini", "rts_mini_match", "rts_flag", "rts_flag_match", "rts_tower")


def _find(env_id: str) -> Entry | None:
    if env_id not in NAMES:
        return None
    try:
        from sf.envs.rts import group  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UsageError(f"env {env_id!r}: {error}: {INSTALL}") from error
    return Entry(group.describe, group.make_group, group.make_rendered_group, to_wrap=_TO_WRAP)


def _env_ids() -> tuple[str, ...]:
    try:
        import numba  # noqa: F401, PLC0415  an extra
    except ImportError:
        return ()
    return NAMES


RTS = Family(
    name="rts",
    about="strategy games, docs/rts.md; their settings are --env_kwargs",
    pattern=r"rts_\w+",
    find=_find,
    env_ids=_env_ids,
    package="numba",
    install=INSTALL,
    against=lambda name: {"opponent": name.lower()},  # the settings refuse a wrong name
    writes_files=("replays",),
)
