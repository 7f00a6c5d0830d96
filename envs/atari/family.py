"""The record of Atari games."""

from __future__ import annotations

import gymnasium as gym

from sf.envs.atari.options import AtariOptions
from sf.envs.family import Entry, Family

_TO_WRAP = (
    "name the game as Gymnasium has it, for example ale_py:ALE/Pong-v5, and add the preprocessing, "
    "gymnasium.wrappers:AtariPreprocessing (with --env_kwargs '{\"frameskip\": 1}')"
)


def _find(env_id: str) -> Entry | None:
    from sf.envs.atari import group  # noqa: PLC0415  the emulator

    if env_id not in group.ENV_IDS:
        return None
    return Entry(group.describe, group.make_group, group.make_rendered_group, to_wrap=_TO_WRAP)


def _env_ids() -> list[str]:
    """Adds the older spellings, which ale_py has registered with Gymnasium."""
    from sf.envs.atari import group  # noqa: PLC0415  the emulator

    older = [env_id for env_id, spec in gym.registry.items() if str(spec.entry_point).startswith("ale_py.")]
    return [*group.ENV_IDS, *older]


ATARI = Family(
    name="atari",
    about="also ALE/Pong-v5 and so on (sticky actions), and PongNoFrameskip-v4 for atari_pong",
    pattern=r"atari_\w+|ALE/[^:]+|\w+NoFrameskip-v4",
    find=_find,
    env_ids=_env_ids,
    listed=lambda env_ids: [env_id for env_id in env_ids if env_id.startswith("atari_")],
    options=AtariOptions,
    preset="atari",
    training_aids=("atari_episodic_life",),
    package="ale_py",
)
