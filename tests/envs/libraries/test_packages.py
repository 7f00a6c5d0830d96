from __future__ import annotations

import sys
from pathlib import Path

import pytest

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


def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", (Package(r"Sausage-v\d+", "no_such_package", "no-such"),))
    with pytest.raises(ValueError, match=r"env 'Sausage-v0' is one of .*no_such_package, .*: pip install no-such$"):
        envs.describe("Sausage-v0", EnvOptions())


@pytest.mark.parametrize(
    ("env_id", "module"),
    [
        ("MiniGrid-Empty-5x5-v0", "minigrid"),
        ("BabyAI-GoToObj-v0", "minigrid"),
        ("highway-v0", "highway_env"),
        ("intersection-multi-agent-v1", "highway_env"),
        ("FlappyBird-v0", "flappy_bird_gymnasium"),
        ("CrafterReward-v1", "crafter"),
        ("NetHackScore-v0", "nle"),
        ("deep-sea-treasure-v0", "mo_gymnasium"),
        ("Foraging-8x8-2p-1f-v3", "lbforaging"),
    ],
)
def test_ids_of_known_packages_are_known_by_their_look(env_id: str, module: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # so that it cannot be imported
    with pytest.raises(ValueError, match=rf"env '{env_id}' is one of the package {module}, .*pip install "):
        envs.describe(env_id, EnvOptions())
