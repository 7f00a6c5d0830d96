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


def test_arguments_are_a_mapping_or_the_json_of_one_or_left_out() -> None:
    envs.register_env("three", Three)
    for written in ([PLUS_TWO], PLUS_TWO, ['{"own_wrappers:Plus": {"much": 2.0}}']):
        options = EnvOptions(env_wrappers=written)  # type: ignore[arg-type]
        assert options.env_wrappers == ('{"own_wrappers:Plus": {"much": 2.0}}',)
        first, _ = play(envs.make_group("three", 1, options, seed=0, first_env_idx=0), 1)
        assert first["obs"].tolist() == [[5.0]]
    for wrong in (['{"a:B": '], ["{}"], [{"a:B": {}, "c:D": {}}], [{"a:B": [1]}], [3], [{"a:B": {"c": object()}}]):
        with pytest.raises(envs.UsageError, match="env_wrappers"):
            EnvOptions(env_wrappers=wrong)  # type: ignore[arg-type]


FLATTEN = "gymnasium.wrappers:FlattenObservation"
FLATTEN_MANY = "gymnasium.wrappers.vector:FlattenObservation"


@pytest.mark.parametrize(
    ("env_id", "wrapper", "kind", "shape"),
    [
        ("CartPole-v1", FLATTEN, GymGroup, (4,)),  # Gymnasium has a vectorised version, which is not taken then
        ("CartPole-v1", FLATTEN_MANY, VectorGroup, (4,)),
        ("three", {"gymnasium.wrappers:ReshapeObservation": {"shape": [1, 1]}}, GymGroup, (1, 1)),
        ("toy_match_pennies", "own_wrappers:Halved", ParallelGroup, (2,)),
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
    envs.register_vector_env("many", lambda num_envs: SyncVectorEnv([Three] * num_envs))
    envs.register_parallel_env("match", Pennies)
    group = make(env_id, wrapper)
    assert isinstance(group, kind)
    assert group.spec.obs_space["obs"].shape == shape
    assert group.spec == envs.describe(env_id, EnvOptions(env_wrappers=[wrapper]))  # type: ignore[arg-type]
    play(group, 3)


def test_a_match_is_wrapped_as_its_package_wraps_it_and_of_two_time_limits_the_shorter_one_counts() -> None:
    _, halved = play(make("toy_match_pennies", "own_wrappers:Halved"), 6)
    _, whole = play(make("toy_match_pennies"), 6)
    assert any(step.result.reward.any() for step in whole)
    for half, one in zip(halved, whole, strict=True):
        assert (2 * half.result.reward == one.result.reward).all()
    for limit, least in ((1000, 200), (100, 100)):  # Pendulum has 200 by itself
        options = EnvOptions(env_wrappers=({"gymnasium.wrappers:TimeLimit": {"max_episode_steps": limit}},))
        assert envs.describe("Pendulum-v1", options).time_limit == least


def test_what_is_drawn_is_wrapped_as_well() -> None:
    options = EnvOptions(env_wrappers=({"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 3}},))
    group = envs.make_rendered_group("toy_bandit", 1, options, seed=0, first_env_idx=0)
    assert group.spec == envs.describe("toy_bandit", options)
    _, steps = play(group, 3)
    assert group.pictures()
    assert len(steps) == 3


REFUSED = {
    "no_module_of_that_name:Wrapper": "no_module_of_that_name",
    "own_wrapers:Plus": "own_wrappers",
    "FlattenObservation": "gymnasium.wrappers:FlattenObservation",
    "own_wrappers.py:Plus": "own_wrappers:Plus",
    "own_wrappers:NUMBER": "NUMBER",
    "os:system": "of Python itself",
    "own_wrappers:Other": "is an environment",
    '{"own_wrappers:Plus": {"munch": 1}}': "'munch': its arguments are much",
    "gymnasium.wrappers:GrayscaleObservation": "around toy_bandit: ValueError",
    FLATTEN_MANY: "vector environments",
}


@pytest.mark.parametrize("wrapper", REFUSED)
def test_a_wrapper_that_cannot_be_is_one_sentence(wrapper: str) -> None:
    with pytest.raises(envs.UsageError, match=REFUSED[wrapper]) as raised:
        make("toy_bandit", wrapper)
    assert str(raised.value).startswith("env_wrappers")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("env_id", "wrapper", "named"),
    [
        ("many", FLATTEN, "single environments"),
        ("toy_match_pennies", FLATTEN, "one agent"),
        ("Acrobot-v1", FLATTEN_MANY, "vector environments"),
        ("atari_pong", FLATTEN, "ale_py:ALE/Pong-v5"),
        ("of_its_own", FLATTEN, "cannot be wrapped"),
    ],
)
def test_a_wrapper_of_another_kind_of_environment_is_refused(env_id: str, wrapper: str, named: str) -> None:
    envs.register_vector_env("many", lambda num_envs: SyncVectorEnv([Bandit] * num_envs))
    envs.register("of_its_own", describe=envs.describe, make_group=envs.make_group)
    for call in (lambda: make(env_id, wrapper), lambda: envs.describe(env_id, EnvOptions(env_wrappers=(wrapper,)))):
        with pytest.raises(envs.UsageError, match=f"^env_wrappers.*({env_id} .*{named}|{named}.* {env_id})"):
            call()


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
    with pytest.raises(envs.UsageError, match="env_wrappers has InACell"):
        make_config(env="toy_bandit", env_wrappers=[InACell])
