from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play

from sf import envs
from sf.envs import EnvOptions, UsageError, registry
from sf.envs.custom import registered as names
from sf.envs.custom.registered import registered
from sf.envs.entries import entry_of_matches
from sf.envs.family import Entry, Family
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
        "print([name for name in ('torch', 'vizdoom', 'ale_py', 'pettingzoo', 'pyspiel') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_listing_all_names_does_not_import_pettingzoo() -> None:
    code = "import sys; from sf import envs; envs.env_ids(); print('pettingzoo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_one_line_registers_an_env_of_ones_own() -> None:
    envs.register_env("my_env", Bandit)
    assert envs.describe("my_env", EnvOptions()).action_space == Bandit.action_space
    assert envs.describe("my_env", EnvOptions(env_frameskip=3)).frameskip == 3
    _, steps = play(_make("my_env"), 2)
    assert steps[0].result.terminated.all()
    assert "my_env" in envs.env_ids()


def test_a_vector_env_of_ones_own_is_registered_likewise() -> None:
    envs.register_vector_env("my_vector", lambda num_envs: gym.vector.SyncVectorEnv([Identity] * num_envs))
    group = _make("my_vector", 3)
    assert isinstance(group, VectorGroup)
    assert group.num_actors == 3
    assert group.spec == envs.describe("my_vector", EnvOptions())
    group.close()


def test_a_parallel_env_of_ones_own_is_registered_likewise() -> None:
    envs.register_parallel_env("my_match", Pennies)
    spec = envs.describe("my_match", EnvOptions(env_frameskip=3))
    assert (spec.num_agents, spec.frameskip) == (2, 3)
    group = _make("my_match", 3)
    assert isinstance(group, ParallelGroup)
    assert group.num_actors == 6
    _, steps = play(group, 2)
    assert steps[0].result.terminated.all()
    assert "my_match" in envs.env_ids()


def test_ids_of_pettingzoo_work_as_they_are() -> None:
    options = EnvOptions(env_kwargs='{"max_cycles": 4}')
    group = envs.make_group("pettingzoo:classic/rps_v2", 2, options, seed=0, first_env_idx=0)
    assert group.spec == envs.describe("pettingzoo:classic/rps_v2", options)
    assert group.spec.num_agents == 2
    _, steps = play(group, 5)
    assert steps[3].result.truncated.all()
    assert not steps[4].result.valid.any()


def test_a_module_that_has_a_parallel_env_needs_no_registration(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_matches").mkdir()
    (tmp_path / "my_matches" / "tag_v0.py").write_text(
        "from sf.envs.toys.matches import CountingMatch as parallel_env\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    group = _make("my_matches.tag_v0:parallel_env", 2, env_kwargs='{"num_agents": 3}')
    assert group.num_actors == 6
    play(group, 1)


def test_a_registered_name_goes_before_gymnasium_s() -> None:
    envs.register_env("CartPole-v1", Bandit)
    group = _make("CartPole-v1")
    assert group.spec.action_space == Bandit.action_space
    group.close()


def test_gymnasium_ids_work_as_they_are() -> None:
    for env_id, kind in [("CartPole-v1", VectorGroup), ("Pendulum-v1", GymGroup)]:
        group = _make(env_id)
        assert isinstance(group, kind)
        assert group.spec == envs.describe(env_id, EnvOptions())
        play(group, 3)


def test_env_kwargs_reach_gymnasium_make() -> None:
    spec = envs.describe("FrozenLake-v1", EnvOptions(env_kwargs='{"map_name": "8x8"}'))
    assert spec.obs_space["obs"].shape == (64,)


def test_a_module_before_a_colon_is_imported_to_register_its_envs(tmp_path, monkeypatch) -> None:
    (tmp_path / "my_package.py").write_text(
        "import gymnasium\nfrom sf.envs.toys.single import Bandit\n"
        "gymnasium.register('FromModule-v0', entry_point=Bandit)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        play(_make("my_package:FromModule-v0"), 1)
        with pytest.raises(ValueError, match="importing my_package did not register 'Other-v0'"):
            _make("my_package:Other-v0")
    finally:
        gym.registry.pop("FromModule-v0", None)


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


@pytest.mark.parametrize(
    ("env_id", "sentence"),
    [
        ("toy_bandid", "env 'toy_bandid' is not known: did you mean toy_bandit"),
        ("atari_brakeout", "did you mean atari_breakout"),
        ("openspiel_leduc_poker", r"did you mean openspiel:leduc_poker\?$"),
        ("pettingzoo/classic/chess_v6", r"did you mean pettingzoo:classic/chess_v6\?$"),
        ("ALE/Pongg-v5", "did you mean ALE/Pong-v5"),
        ("CartPole-v9", "did you mean CartPole-v1"),
        ("connect_four_v3", r"'connect_four_v3' is not known: did you mean pettingzoo:classic/connect_four-v3\?"),
        ("simple_spread_v3", "those of other packages with their module, as in mpe2.simple_spread_v3:parallel_env"),
        ("zzzzqqqq", "is not known: register it with envs.register_env"),
        (
            "Sausage-v0",
            "env 'Sausage-v0' is not known: no package that was imported registers it; if an installed one does.*, "
            "name its module, as in [a-z_]+:Sausage-v0",
        ),
        ("no_such_module:Env-v0", "no_such_module cannot be imported"),
        ("no_such.game_v0:parallel_env", r"\(No module named 'no_such'\): check the name, install"),
        ("yaml:parallel_env", "the module yaml has no function parallel_env"),
        ("pettingzoo:classic/rps_v1", r"env 'pettingzoo:classic/rps_v1' with .* v1 .* not found"),
        (
            "pettingzoo:mpe/simple_spread_v3",
            "PettingZoo has no 'mpe/simple_spread_v3': it is in a package of its own now: "
            "pip install mpe2, and --env mpe2.simple_spread_v3:parallel_env$",
        ),
        ("pettingzoo:classic/conect_four_v3", r"did you mean pettingzoo:classic/connect_four.v3\?$"),
        ("pettingzoo:xyz", "PettingZoo has no 'xyz': sf-envs pettingzoo lists its names$"),
        ("toy_match_rsp", "did you mean toy_match_rps"),
        ("..", r"env '\.\.' is no name: name an environment, for example CartPole-v1"),
        (" ", "env ' ' is no name"),
        ("", "env '' is no name"),
        (":", "env ':' is no name"),
        ("a:", "env 'a:' is not of the form module:Name: write it as in my_module:MyClass"),
        (":x", "env ':x' is not of the form module:Name"),
        (".x:y", r"env '\.x:y' is not of the form module:Name"),
        ("a..b:c", r"env 'a\.\.b:c' is not of the form module:Name"),
        ("my-module:Env", "env 'my-module:Env' is not of the form module:Name"),
        ("CartPole-v1:", "env 'CartPole-v1:' is not of the form module:Name"),
        ("os:system", "env 'os:system': os is a module of Python itself: name one of your own"),
        ("subprocess:Popen", "subprocess is a module of Python itself"),
        ("builtins:eval", "builtins is a module of Python itself"),
        ("importlib.util:parallel_env", "importlib.util is a module of Python itself"),
    ],
)
def test_a_wrong_name_gets_a_sentence_that_helps(env_id: str, sentence: str) -> None:
    for ask in (_make, lambda env_id: envs.describe(env_id, EnvOptions())):
        with pytest.raises(ValueError, match=sentence):
            ask(env_id)


@pytest.mark.parametrize(
    ("env_id", "sentence"),
    [
        (
            "my_envs/walk.py:Walk",
            "env 'my_envs/walk.py:Walk' names a file: write my_envs.walk:Walk, as one would import",
        ),
        ("./my_envs/walk:Walk", "write my_envs.walk:Walk"),
        ("walk.py:Walk", "write walk:Walk"),
        ("/some/where/walk.py:Walk", "write walk:Walk"),
        ("my_envs/walk.py", "is not known: one of your own is named as module:Name, here my_envs.walk:MyClass"),
        ("my_envs.walk", "here my_envs.walk:MyClass, with the name of the class"),
        ("my_envs.walk.Walk", "here my_envs.walk:Walk"),
    ],
)
def test_who_names_a_file_is_told_how_what_is_in_it_is_named(env_id, sentence, tmp_path, monkeypatch) -> None:
    (tmp_path / "my_envs").mkdir()
    (tmp_path / "my_envs" / "walk.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=sentence):
        envs.describe(env_id, EnvOptions())


def test_a_family_that_cannot_be_drawn_trains_and_says_so(monkeypatch) -> None:
    made = entry_of_matches(Pennies)
    plain = Family("plain", "", "plain", lambda env_id: Entry(made.describe, made.make_group))
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, plain))
    assert envs.describe("plain", EnvOptions()).num_agents == 2
    with pytest.raises(ValueError, match=r"env 'plain' cannot be drawn: .* make_rendered_group"):
        envs.make_rendered_group("plain", 1, EnvOptions(), seed=0, first_env_idx=0)


def test_an_unsupported_observation_space_is_named_before_anything_runs() -> None:
    env = Bandit()
    env.observation_space = gym.spaces.Sequence(gym.spaces.Discrete(2))
    envs.register_env("odd", lambda: env)
    with pytest.raises(ValueError, match=r"odd: its observation space .* has nothing that a network can read"):
        envs.describe("odd", EnvOptions())


def test_a_wrong_keyword_of_an_env_is_named() -> None:
    with pytest.raises(ValueError, match=r"env 'Pendulum-v1' with env_kwargs .*'gravitas'"):
        envs.describe("Pendulum-v1", EnvOptions(env_kwargs='{"gravitas": 1}'))


def test_a_missing_package_of_gymnasium_is_named(monkeypatch) -> None:
    def make(*args: object, **kwargs: object) -> None:
        raise gym.error.DependencyNotInstalled('Box2D is not installed, run `pip install "gymnasium[box2d]"`')

    monkeypatch.setattr(gym, "make", make)
    with pytest.raises(ValueError, match=r"env 'LunarLander-v3' with .*pip install"):
        envs.describe("LunarLander-v3", EnvOptions())


def test_a_wrong_keyword_of_a_parallel_env_is_named() -> None:
    for env_id in ("pettingzoo:classic/rps_v2", "pettingzoo.classic.rps_v2:parallel_env"):
        with pytest.raises(ValueError, match=f"env '{env_id}' with env_kwargs .*'gravitas'"):
            envs.describe(env_id, EnvOptions(env_kwargs='{"gravitas": 1}'))


def test_pettingzoo_is_named_where_it_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo.env_registry.registration", None)
    with pytest.raises(ValueError, match=r"env 'pettingzoo:classic/rps_v2': .* pip install 'pettingzoo>=1.27'"):
        envs.describe("pettingzoo:classic/rps_v2", EnvOptions())


def test_every_name_can_be_listed() -> None:
    names = envs.env_ids()
    assert {"toy_memory", "toy_match_rps", "atari_pong", "ALE/Pong-v5", "CartPole-v1"} <= set(names)
    assert len(names) == len(set(names))


def test_seeds_of_envs_are_apart_and_positive() -> None:
    seeds = {envs.seeding.env_seed(seed, env_idx) for seed in range(20) for env_idx in range(200)}
    assert len(seeds) == 4000
    assert min(seeds) > 0
    assert max(seeds) < 2**31
    assert np.int32(max(seeds)) == max(seeds)
