"""Environments of one's own: by decorator, by module:Name, with statistics and shaped rewards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from group_driver import Memory, play
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sf import envs
from sf.envs import EnvOptions, StepResult, UsageError
from sf.envs.custom.registered import registered
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.vector import VectorGroup
from sf.envs.toys.single import Counting, Identity

SOURCE = """
import gymnasium
from gymnasium.vector import SyncVectorEnv
from sf.envs import register_env
from sf.envs.toys.matches import Pennies
from sf.envs.toys.single import Bandit, Memory

class Vector(SyncVectorEnv):
    def __init__(self, num_envs, delay=4):
        super().__init__([lambda: Memory(delay)] * num_envs)

def memory(delay=2):
    return Memory(delay)

@register_env("remembered")
def _private():
    return Memory()

gymnasium.register("OwnGym-v0", Bandit)
NUMBER = 3
from functools import partial
hard = partial(Memory, delay=3)
"""


@pytest.fixture(autouse=True)
def _own_names() -> Iterator[None]:
    before = dict(registered)
    yield
    registered.clear()
    registered.update(before)


@pytest.fixture
def _own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the working directory, which is not on the path of a command."""
    (tmp_path / "own_envs.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield
    sys.modules.pop("own_envs", None)
    gym.registry.pop("OwnGym-v0", None)


def _make(env_id: str, num_envs: int = 2, **options: object) -> envs.EnvGroup:
    return envs.make_group(env_id, num_envs, EnvOptions(**options), seed=0, first_env_idx=0)


@pytest.mark.usefixtures("_own_module")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memory", GymGroup),
        ("memory", GymGroup),
        ("remembered", GymGroup),
        ("OwnGym-v0", GymGroup),
        ("Vector", VectorGroup),
        ("Pennies", ParallelGroup),
        ("hard", GymGroup),
    ],
)
def test_module_and_name_find_classes_functions_and_what_the_module_registers(name: str, kind: type) -> None:
    group = _make(f"own_envs:{name}", 3)
    assert isinstance(group, kind)
    assert group.spec == envs.describe(f"own_envs:{name}", EnvOptions())
    play(group, 2)


@pytest.mark.usefixtures("_own_module")
@pytest.mark.parametrize(
    ("name", "kwargs", "named"),
    [
        ("Nothing", "{}", "Nothing"),
        ("NUMBER", "{}", "NUMBER"),
        ("memory", '{"gravitas": 1}', "'gravitas'"),
    ],
)
def test_what_a_module_does_not_offer_is_said(name: str, kwargs: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        envs.describe(f"own_envs:{name}", EnvOptions(env_kwargs=kwargs))


@pytest.mark.usefixtures("_own_module")
@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("import no_such_package\n", "own_envs cannot be imported .*no_such_package"),
        ("import sys\n\nsys.exit()\n", r"own_envs calls sys.exit \(.*own_envs.py, line 3\)"),
        ("import gymnasium\n\nclass Env(gymnasium.Env)\n    pass\n", r"own_envs\.py, line 3"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_with_the_line(tmp_path: Path, source: str, named: str) -> None:
    (tmp_path / "own_envs.py").write_text(source)
    with pytest.raises(UsageError, match=named) as raised:
        _make("own_envs:Memory")
    assert "\n" not in str(raised.value)


class Counted(gym.Wrapper):
    """Counts its steps, once more, among its statistics."""

    def reset(self, **kwargs):
        self._count = 0
        return self.env.reset(**kwargs)

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._count += 1
        if terminated or truncated:
            info = {**info, "episode_stats": {"count": self._count, "raw_return": 2 * self._count}}
        return obs, reward, terminated, truncated, info


@pytest.mark.parametrize("mode", [*AutoresetMode, None])
def test_statistics_of_an_episode_are_those_that_the_environment_gave_with_its_last_step(
    mode: AutoresetMode | None,
) -> None:
    makers = [lambda i=i: Counted(Counting(env_idx=i)) for i in range(4)]
    if mode is None:
        group: envs.EnvGroup = GymGroup("counted", [make() for make in makers], 0, 0)
    else:
        group = VectorGroup("counted", SyncVectorEnv(makers, autoreset_mode=mode), 0, 0)
    _, steps = play(group, 60)
    episodes = [episode for step in steps for episode in step.episodes]
    assert len(episodes) > 20
    for episode in episodes:
        k = episode.num_steps
        assert episode.episode_return == 2 * k
        assert episode.stats == {"count": k, "shaped_return": k * (k + 1) / 2}


class Shaped(gym.Wrapper):
    shaping = {"bonus": 0.5, "malus": -2}  # noqa: RUF012

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.weights = dict(self.shaping)

    def set_shaping(self, weights: dict[str, float]) -> None:
        self.weights = weights

    def step(self, action):
        obs, _, *rest = self.env.step(action)
        return obs, self.weights["bonus"], *rest


def test_weights_of_shaped_rewards_reach_the_environment_of_their_actor_through_wrappers() -> None:
    singles = [gym.wrappers.TimeLimit(Shaped(Identity()), 100) for _ in range(2)]
    group = GymGroup("shaped", singles, 0, 0)
    assert group.spec.shaping == {"bonus": 0.5, "malus": -2.0}
    group.set_shaping(1, np.array([3.0, -1.0], np.float32))
    assert singles[1].get_wrapper_attr("weights") == {"bonus": 3.0, "malus": -1.0}
    rows, result = Memory(group).rows, StepResult.empty(2)
    group.reset(rows)
    group.step(np.zeros((2, 1), np.int32), np.zeros((2, 0), np.float32), rows, result)
    assert result.reward.tolist() == [0.5, 3.0]
    group.close()
    assert GymGroup("plain", [Identity()], 0, 0).spec.shaping == {}
    singles[0].env.shaping = ["bonus"]  # without names
    with pytest.raises(UsageError, match="`shaping`"):
        GymGroup("shaped", singles[:1], 0, 0)
