"""`env_wrappers`: what is put around an environment, in which order, and what is said of those that cannot be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import FlattenObservation

from sf import envs
from sf.envs import EnvOptions
from sf.envs.custom.registered import registered
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.groups.vector import VectorGroup
from sf.envs.toys.matches import Pennies
from sf.envs.toys.single import Bandit

SOURCE = """
import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TransformObservation

class Plus(gym.ObservationWrapper):
    def __init__(self, env, much=1.0):
        super().__init__(env)
        self._much = much
        self.observation_space = gym.spaces.Box(-1e6, 1e6, env.observation_space.shape)

    def observation(self, obs):
        return np.asarray(obs + self._much, np.float32)

def doubled(env):
    space = gym.spaces.Box(-1e6, 1e6, env.observation_space.shape)
    return TransformObservation(env, lambda obs: np.asarray(2 * obs, np.float32), space)

class Image(gym.ObservationWrapper):
    observation_space = gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)

    def observation(self, obs):
        return np.zeros((36, 36, 3), np.uint8)

class Words(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Dict(number=env.observation_space, words=gym.spaces.Text(5))

    def observation(self, obs):
        return {"number": obs, "words": "hello"}

class Fails(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self._half()

    def _half(self):
        return 1 / 0

class OldStyle:  # of the package gym: it hands on whatever its environment returns
    def __init__(self, env):
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self):
        return self.env.reset()

    def step(self, action):
        return self.env.step(action)

class Halved:
    def __init__(self, env):
        self._env = env

    def __getattr__(self, name):
        return getattr(self._env, name)

    def reset(self, seed=None):
        return self._env.reset(seed=seed)

    def step(self, actions):
        obs, rewards, *rest = self._env.step(actions)
        return obs, {agent: reward / 2 for agent, reward in rewards.items()}, *rest

class Other(gym.Env):
    def __init__(self, env=None):
        self.observation_space = self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

def nothing(env):
    pass

from shutil import rmtree
NUMBER = 3
"""


@pytest.fixture(autouse=True)
def _own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_wrappers.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    before = dict(registered)
    yield
    registered.clear()
    registered.update(before)
    sys.modules.pop("own_wrappers", None)


class Three(gym.Env):
    """Shows the number 3 for ever."""

    observation_space = gym.spaces.Box(3, 3, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.array([3.0], np.float32), {}

    def step(self, action):
        return np.array([3.0], np.float32), 1.0, False, False, {}


class OldThree:
    """With the API of gym."""

    observation_space = gym.spaces.Box(3, 3, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self):
        return np.array([3.0], np.float32)

    def step(self, action):
        return np.array([3.0], np.float32), 1.0, False, {}


def make(env_id: str, *wrappers: object, **options: object) -> envs.EnvGroup:
    return envs.make_group(env_id, 2, EnvOptions(env_wrappers=wrappers, **options), seed=0, first_env_idx=0)


PLUS_TWO = {"own_wrappers:Plus": {"much": 2.0}}
DOUBLED = "own_wrappers:doubled"


@pytest.mark.parametrize(("wrappers", "shown"), [([PLUS_TWO, DOUBLED], 10.0), ([DOUBLED, PLUS_TWO], 8.0)])
def test_the_first_wrapper_is_the_innermost(wrappers: list[object], shown: float) -> None:
    envs.register_env("three", Three)
    first, steps = play(make("three", *wrappers), 2)
    assert first["obs"].tolist() == [[shown]] * 2
    assert steps[-1].obs["obs"].tolist() == [[shown]] * 2


@pytest.mark.parametrize(
    "written",
    [
        [{"own_wrappers:Plus": {"much": 2.0}}],
        {"own_wrappers:Plus": {"much": 2.0}},
        ['{"own_wrappers:Plus": {"much": 2.0}}'],
    ],
)
def test_arguments_are_a_mapping_or_the_json_of_one(written: object) -> None:
    envs.register_env("three", Three)
    options = EnvOptions(env_wrappers=written)  # type: ignore[arg-type]
    assert options.env_wrappers == ('{"own_wrappers:Plus": {"much": 2.0}}',)
    first, _ = play(envs.make_group("three", 1, options, seed=0, first_env_idx=0), 1)
    assert first["obs"].tolist() == [[5.0]]


@pytest.mark.parametrize("written", ["own_wrappers:Plus", {"own_wrappers:Plus": None}, {"own_wrappers:Plus": {}}])
def test_a_wrapper_needs_no_arguments(written: object) -> None:
    envs.register_env("three", Three)
    first, _ = play(make("three", written), 1)
    assert first["obs"][0].tolist() == [4.0]


FLATTEN = "gymnasium.wrappers:FlattenObservation"
FLATTEN_MANY = "gymnasium.wrappers.vector:FlattenObservation"


@pytest.mark.parametrize(
    ("env_id", "wrapper", "kind", "shape"),
    [
        ("CartPole-v1", FLATTEN, GymGroup, (4,)),  # Gymnasium has a vectorised version, which is not taken then
        ("CartPole-v1", FLATTEN_MANY, VectorGroup, (4,)),
        ("FrozenLake-v1", FLATTEN, GymGroup, (16,)),
        ("three", {"gymnasium.wrappers:ReshapeObservation": {"shape": [1, 1]}}, GymGroup, (1, 1)),
        ("toy_match_pennies", "own_wrappers:Halved", ParallelGroup, (2,)),
        ("old", "own_wrappers:Plus", GymGroup, (1,)),
        ("old", "own_wrappers:doubled", GymGroup, (1,)),
        ("old", "own_wrappers:OldStyle", GymGroup, (1,)),
        ("many", FLATTEN_MANY, VectorGroup, (1,)),
        ("match", "own_wrappers:Halved", ParallelGroup, (2,)),
        ("own_wrappers:Other", FLATTEN, GymGroup, (2,)),
        ("ale_py:ALE/Pong-v5", "gymnasium.wrappers:GrayscaleObservation", GymGroup, (210, 160)),
    ],
)
def test_each_kind_of_environment_takes_wrappers_of_its_kind(
    env_id: str, wrapper: object, kind: type, shape: tuple[int, ...]
) -> None:
    envs.register_env("three", Three)
    envs.register_env("old", OldThree)
    envs.register_vector_env("many", lambda num_envs: SyncVectorEnv([Three] * num_envs))
    envs.register_parallel_env("match", Pennies)
    group = make(env_id, wrapper)
    assert isinstance(group, kind)
    assert group.spec.obs_space["obs"].shape == shape
    assert group.spec == envs.describe(env_id, EnvOptions(env_wrappers=[wrapper]))  # type: ignore[arg-type]
    play(group, 3)


def test_a_match_is_wrapped_as_its_package_wraps_it() -> None:
    _, halved = play(make("toy_match_pennies", "own_wrappers:Halved"), 6)
    _, whole = play(make("toy_match_pennies"), 6)
    assert any(step.result.reward.any() for step in whole)
    for half, one in zip(halved, whole, strict=True):
        assert (2 * half.result.reward == one.result.reward).all()


@pytest.mark.parametrize(("limit", "least"), [(1000, 200), (100, 100)])
def test_of_two_time_limits_the_shorter_one_counts(limit: int, least: int) -> None:
    options = EnvOptions(env_wrappers=({"gymnasium.wrappers:TimeLimit": {"max_episode_steps": limit}},))
    assert envs.describe("Pendulum-v1", options).time_limit == least  # 200 by itself


def test_what_is_drawn_is_wrapped_as_well() -> None:
    options = EnvOptions(env_wrappers=({"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 3}},))
    group = envs.make_rendered_group("toy_bandit", 1, options, seed=0, first_env_idx=0)
    assert group.spec == envs.describe("toy_bandit", options)
    _, steps = play(group, 3)
    assert group.pictures()
    assert len(steps) == 3
    options = EnvOptions(env_wrappers=("own_wrappers:Image",))
    group = envs.make_rendered_group("CartPole-v1", 1, options, seed=0, first_env_idx=0)
    assert group.spec.obs_space["obs"].shape == (36, 36, 3)
    group.close()


def test_what_no_network_reads_is_named_as_the_wrapper_gives_it(caplog: pytest.LogCaptureFixture) -> None:
    make("toy_bandit", "own_wrappers:Words").close()
    assert "the policy does not see 'words' (Text)" in caplog.text


REFUSED = {
    "no_module_of_that_name:Wrapper": "'no_module_of_that_name:Wrapper': .*No module named 'no_module_of_that_name'",
    "own_wrapers:Plus": "'own_wrapers:Plus': .*did you mean own_wrappers",
    "gymnasium.wrapers:FlattenObservation": "did you mean gymnasium.wrappers",
    "gymnasium.wrappers:FlatenObservation": "gymnasium.wrappers has no 'FlatenObservation': did you mean FlattenObs",
    "gymnasium.wrappers:Nothing": "gymnasium.wrappers has no 'Nothing'",
    "FlattenObservation": "write gymnasium.wrappers:FlattenObservation",
    "gymnasium.wrappers.FlattenObservation": "write gymnasium.wrappers:FlattenObservation",
    "own_wrappers.Plus": "write own_wrappers:Plus",
    "own_wrappers.py:Plus": "write own_wrappers:Plus",
    "own_wrappers:NUMBER": "own_wrappers has no 'NUMBER'|is no wrapper",
    "own_wrappers:rmtree": "rmtree is not defined in own_wrappers",
    "own_wrappers:np": "own_wrappers has no 'np'|is no wrapper",
    "os:system": "os is a module of Python itself",
    "own_wrappers:Other": "Other is an environment, not a wrapper: derive it from gymnasium.Wrapper",
    "gymnasium.spaces:Box": "Box is a class, but not a wrapper",
    "own_wrappers:nothing": "returned a NoneType: return the environment",
    "own_wrappers:Fails": r"ZeroDivisionError: division by zero \(.*own_wrappers.py, line \d+\)",
    '{"own_wrappers:Plus": {"munch": 1}}': "unexpected keyword argument 'munch': its arguments are much",
    '{"gymnasium.wrappers:TimeLimit": {}}': "missing a required argument: 'max_episode_steps'",
    "gymnasium.wrappers:GrayscaleObservation": "GrayscaleObservation' around toy_bandit: ValueError: .* got shape .1,.",
    FLATTEN_MANY: "is for vector environments, and toy_bandit makes single ones: gymnasium.wrappers has those",
}


@pytest.mark.parametrize("wrapper", REFUSED)
def test_a_wrapper_that_cannot_be_is_one_sentence(wrapper: str) -> None:
    with pytest.raises(envs.UsageError, match=REFUSED[wrapper]) as raised:
        make("toy_bandit", wrapper)
    assert str(raised.value).startswith("env_wrappers")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("env_id", "wrapper", "sentence"),
    [
        ("many", FLATTEN, "is for single environments, and many makes a vector environment: gymnasium.wrappers.vector"),
        ("toy_match_pennies", FLATTEN, "is for environments of one agent, and toy_match_pennies has several"),
        ("Acrobot-v1", FLATTEN_MANY, "is for vector environments, and Acrobot-v1 makes single ones"),
        ("doom_basic", FLATTEN, "doom_basic .* takes no wrappers: .*vizdoom.gymnasium_wrapper:VizdoomBasic-v1"),
        ("atari_pong", FLATTEN, "atari_pong .* takes no wrappers: .*ale_py:ALE/Pong-v5"),
        ("of_its_own", FLATTEN, "of_its_own .* takes no wrappers: "),
    ],
)
def test_a_wrapper_of_another_kind_of_environment_is_one_sentence(env_id: str, wrapper: str, sentence: str) -> None:
    toy = EnvOptions()
    envs.register_vector_env("many", lambda num_envs: SyncVectorEnv([Bandit] * num_envs))
    envs.register(
        "of_its_own",
        describe=lambda env_id, options: envs.describe("toy_bandit", toy),
        make_group=lambda env_id, *args, **kwargs: envs.make_group("toy_bandit", *args, **kwargs),
    )
    for call in (lambda: make(env_id, wrapper), lambda: envs.describe(env_id, EnvOptions(env_wrappers=(wrapper,)))):
        with pytest.raises(envs.UsageError, match=sentence):
            call()


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (['{"a:B": '], "is not JSON"),
        (["{}"], "one wrapper and its arguments"),
        ([{"a:B": {}, "c:D": {}}], "one wrapper and its arguments"),
        ([{"a:B": [1]}], "its arguments must be a mapping"),
        ([3], "env_wrappers is .*: it must be"),
        ([{"a:B": {"c": object()}}], "not JSON serializable"),
    ],
)
def test_a_list_of_wrappers_that_is_none_is_said_before_anything_is_imported(written: list, sentence: str) -> None:
    with pytest.raises(envs.UsageError, match=sentence):
        EnvOptions(env_wrappers=written)  # type: ignore[arg-type]


def test_a_class_is_named_where_other_processes_can_import_it() -> None:
    sys.path.append(str(Path.cwd()))
    import own_wrappers  # type: ignore[import-not-found]  # noqa: PLC0415

    from sf import make_config  # noqa: PLC0415

    class InACell(gym.Wrapper):
        pass

    given = [own_wrappers.Plus, {own_wrappers.Plus: {"much": 2.0}}, own_wrappers.doubled, FlattenObservation]
    config = make_config(env="toy_bandit", env_wrappers=given)
    assert config.environment.env_wrappers == (
        "own_wrappers:Plus",
        '{"own_wrappers:Plus": {"much": 2.0}}',
        "own_wrappers:doubled",
        FLATTEN,
    )
    config = make_config(env="toy_bandit", env_wrappers=own_wrappers.Plus)
    assert config.environment.env_wrappers == ("own_wrappers:Plus",)
    with pytest.raises(envs.UsageError, match=r"env_wrappers has InACell, which other .* cannot import: .*lambda"):
        make_config(env="toy_bandit", env_wrappers=[InACell])
