from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions
from sf.envs.libraries import packages
from sf.envs.libraries.packages import Package

MODULE = """
import gymnasium as gym
import numpy as np

class Walk(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, size=2):
        self.action_space = gym.spaces.Discrete(size)

gym.register("Stroll-Short-v0", entry_point=Walk)
"""


@pytest.fixture
def stroll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stroll.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stroll", raising=False)
    monkeypatch.delitem(gym.registry, "Stroll-Short-v0", raising=False)
    package = Package(r"Stroll.*", "stroll", "gym-stroll", {"StrollOld-v1": ("Walk", {"size": 5})})
    monkeypatch.setattr(packages, "PACKAGES", (package,))


@pytest.mark.usefixtures("stroll")
def test_the_package_of_an_id_is_imported_for_it_and_for_no_other() -> None:
    with pytest.raises(ValueError, match="env 'Sausage-v0' is not known"):
        envs.describe("Sausage-v0", EnvOptions())
    assert "stroll" not in sys.modules
    assert envs.describe("Stroll-Short-v0", EnvOptions()).action_space.n == 2
    assert "stroll" in sys.modules
    with pytest.raises(ValueError, match="did you mean Stroll-Short-v0"):
        envs.describe("Stroll-Shore-v0", EnvOptions())


@pytest.mark.usefixtures("stroll")
def test_an_id_that_a_package_registers_with_gym_alone_is_made_of_its_class() -> None:
    assert envs.describe("StrollOld-v1", EnvOptions()).action_space.n == 5


def test_an_id_with_a_namespace_imports_the_package_of_that_name(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "strolls.py").write_text(MODULE.replace("Stroll-Short-v0", "strolls/Long-v0"))
    monkeypatch.syspath_prepend(tmp_path)
    assert envs.describe("strolls/Long-v0", EnvOptions()).action_space.n == 2
    with pytest.raises(ValueError, match="env 'strols/Long-v0' is not known: did you mean strolls/Long-v0"):
        envs.describe("strols/Long-v0", EnvOptions())


class OldCreator:
    """An environment with the API of gym before 0.26."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)

    def __init__(self, size: int) -> None:
        self.action_space = gym.spaces.Discrete(size)

    def reset(self):
        return np.zeros(2, np.float32)

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, {}


@pytest.mark.parametrize("before_0_26", [False, True])
def test_an_id_that_is_registered_with_gym_alone_is_taken_from_there_with_its_time_limit(
    before_0_26: bool, stroll: None, monkeypatch
) -> None:
    kwargs = {"_kwargs" if before_0_26 else "kwargs": {"size": 7}}
    spec = SimpleNamespace(id="StrollElder-v0", entry_point=OldCreator, max_episode_steps=3, **kwargs)
    specs = {spec.id: spec}
    registry = SimpleNamespace(env_specs=specs) if before_0_26 else specs
    monkeypatch.setitem(sys.modules, "gym.envs.registration", SimpleNamespace(registry=registry))
    for name in ("StrollElder-v0", "stroll:StrollElder-v0"):
        group = envs.make_group(name, 1, EnvOptions(), seed=0, first_env_idx=0)
        assert group.spec.action_space.n == 7
        _, steps = play(group, 3)
        assert [episode.num_steps for step in steps for episode in step.episodes] == [3]


@pytest.mark.parametrize(
    ("env_id", "module"),
    [
        *(("MiniGrid-Empty-5x5-v0", "minigrid"), ("intersection-multi-agent-v1", "highway_env")),
        *(("NetHackScore-v0", "nle"), ("Foraging-8x8-2p-1f-v3", "lbforaging")),
    ],
)
def test_ids_of_known_packages_are_known_by_their_look(env_id: str, module: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # so that it cannot be imported
    with pytest.raises(ValueError, match=f"{module} .*pip install "):
        envs.describe(env_id, EnvOptions())
