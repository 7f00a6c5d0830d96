"""What tests of Doom share."""

from collections.abc import Iterator

import pytest
from doom_stage import Stage

from sf.envs.doom.group import make_group
from sf.envs.options import EnvOptions


@pytest.fixture
def stage() -> Iterator:
    """A function that starts a group; it is closed at the end."""
    groups = []

    def start(env_id: str = "doom_basic", num_envs: int = 1, seed: int = 3, first_env_idx: int = 0, **options) -> Stage:
        groups.append(make_group(env_id, num_envs, EnvOptions(**options), seed=seed, first_env_idx=first_env_idx))
        return Stage(groups[-1])

    yield start
    for group in groups:
        group.close()
