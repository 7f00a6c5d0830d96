from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions, UsageError
from sf.envs.custom import registered as names
from sf.envs.custom.registered import registered
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.vector import VectorGroup
from sf.envs.toys.matches import Pennies
from sf.envs.toys.single import Bandit, Identity


@pytest.fixture(autouse=True)
def _own_names() -> Iterator[None]:
    before = dict(registered)
    yield
    registered.clear()
    registered.update(before)


def _make(env_id: str, num_envs: int = 2, **options: object) -> envs.EnvGroup:
    return envs.make_group(env_id, num_envs, EnvOptions(**options), seed=0, first_env_idx=0)


def test_importing_envs_imports_no_emulator_and_no_torch() -> None:
    code = (
        "import sys; from sf import envs;"
        "envs.make_group('MountainCar-v0', 1, envs.EnvOptions(), seed=0, first_env_idx=0).close();"
        "envs.make_group('toy_match_rps', 1, envs.EnvOptions(), seed=0, first_env_idx=0).close();"
        "print([name for name in ('torch', 'vizdoom', 'ale_py', 'pettingzoo', 'pyspiel') if name in sys.modules]);"
        "envs.env_ids(); print('pettingzoo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "False"]


def test_one_line_registers_an_env_of_any_kind_before_those_of_the_same_name() -> None:
    envs.register_env("CartPole-v1", Bandit)
    envs.register_vector_env("my_vector", lambda num_envs: gym.vector.SyncVectorEnv([Identity] * num_envs))
    envs.register_parallel_env("my_match", Pennies)
    kinds = {"CartPole-v1": (GymGroup, 1), "my_vector": (VectorGroup, 1), "my_match": (ParallelGroup, 2)}
    kinds |= {"Pendulum-v1": (GymGroup, 1), "pettingzoo:classic/rps_v2": (ParallelGroup, 2)}  # as they are
    for env_id, (kind, num_agents) in kinds.items():
        group = _make(env_id, 3)
        assert isinstance(group, kind)
        assert group.num_actors == 3 * num_agents
        assert group.spec == envs.describe(env_id, EnvOptions())
        play(group, 2)
    for env_id in ("CartPole-v1", "my_match"):
        assert envs.describe(env_id, EnvOptions(env_frameskip=3)).frameskip == 3
    names = envs.env_ids()
    own = {"CartPole-v1", "my_vector", "my_match"}
    assert {*own, "toy_memory", "toy_match_rps", "atari_pong", "ALE/Pong-v5"} <= set(names)
    assert len(names) == len(set(names))


def test_an_entry_point_is_loaded_only_for_a_name_that_is_not_known_otherwise(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_plugin.py").write_text(
        "from sf import envs\nfrom sf.envs.toys.single import Bandit\n"
        "def register():\n    envs.register_env('plugged', Bandit)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    asked = []

    def entry_points(group: str) -> list[EntryPoint]:
        asked.append(group)
        return [EntryPoint("mine", "my_plugin:register", group)]

    monkeypatch.setattr(names, "entry_points", entry_points)
    envs.describe("toy_bandit", EnvOptions())
    envs.describe("CartPole-v1", EnvOptions())
    assert not asked
    assert envs.describe("plugged", EnvOptions()).action_space == Bandit.action_space
    assert asked == ["sf.envs"]


MEANT = {
    **{"toy_bandid": "toy_bandit", "atari_brakeout": "atari_breakout"},
    **{"ALE/Pongg-v5": "ALE/Pong-v5", "CartPole-v9": "CartPole-v1"},
    "connect_four_v3": "pettingzoo:classic/connect_four-v3",
    "simple_spread_v3": "mpe2.simple_spread_v3:parallel_env",
    **{"zzzzqqqq": "envs.register_env", "Sausage-v0": "[a-z_]+:Sausage-v0"},
    **{"no_such_module:Env-v0": "no_such_module", "no_such.game_v0:parallel_env": "'no_such'"},
    **dict.fromkeys(("..", "", ":"), "sf-envs lists them"),
    **dict.fromkeys(("a:", ":x", "a..b:c", "my-module:Env"), "module:Name"),
    **dict.fromkeys(("os:system", "importlib.util:parallel_env"), "of Python itself"),
    **{"./my_envs/walk.py:Walk": "my_envs.walk:Walk", "/some/where/walk.py:Walk": " walk:Walk"},
}


@pytest.mark.parametrize("env_id", MEANT)
def test_a_wrong_name_is_refused_with_what_may_be_meant(env_id: str, tmp_path, monkeypatch) -> None:
    (tmp_path / "my_envs").mkdir()
    (tmp_path / "my_envs" / "walk.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])  # a module is looked for in the working directory from then on
    for ask in (_make, lambda env_id: envs.describe(env_id, EnvOptions())):
        with pytest.raises(UsageError, match=f"env '?{re.escape(env_id)}.*{MEANT[env_id]}|PettingZoo.*{MEANT[env_id]}"):
            ask(env_id)


def test_a_wrong_keyword_of_an_environment_is_named() -> None:
    for env_id in ("Pendulum-v1", "pettingzoo:classic/rps_v2", "pettingzoo.classic.rps_v2:parallel_env"):
        with pytest.raises(UsageError, match="gravitas"):
            envs.describe(env_id, EnvOptions(env_kwargs='{"gravitas": 1}'))


def test_seeds_of_envs_are_apart_and_positive() -> None:
    seeds = {envs.seeding.env_seed(seed, env_idx) for seed in range(20) for env_idx in range(200)}
    assert len(seeds) == 4000
    assert min(seeds) > 0
    assert max(seeds) < 2**31
    assert np.int32(max(seeds)) == max(seeds)
