from __future__ import annotations

from collections.abc import Callable, Iterator

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sf.envs import EnvGroup, EnvOptions, make_group, make_rendered_group, register_vector_env
from sf.envs.errors import ApiError, UsageError
from sf.envs.groups.vector import VectorGroup, _batch_decoder
from sf.envs.spaces.actions import ActionSpec
from sf.envs.toys.single import TOYS, Counting


def _counting(mode: AutoresetMode, num_envs: int = 5) -> VectorGroup:
    env_fns = [lambda i=i: Counting(env_idx=i) for i in range(num_envs)]
    return VectorGroup("counting", SyncVectorEnv(env_fns, autoreset_mode=mode), 0, 0)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_no_step_is_lost_and_none_is_counted_twice(mode: AutoresetMode) -> None:
    """Every env goes through its episodes in order, and each is reported with its length and return."""
    group = _counting(mode)
    _, steps = play(group, 120)
    for n in range(5):
        episodes = [episode for step in steps for episode in step.episodes if episode.actor_idx == n]
        lengths = [Counting.num_steps(n, e) for e in range(len(episodes))]
        assert len(lengths) >= 10
        assert [episode.num_steps for episode in episodes] == lengths
        assert [episode.episode_return for episode in episodes] == [k * (k + 1) / 2 for k in lengths]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_valid_row_belongs_to_the_observation_before_it(mode: AutoresetMode) -> None:
    first_obs, steps = play(_counting(mode), 120)
    before = first_obs["obs"]
    for step in steps:
        after, row = step.obs["obs"], step.result
        for n in np.flatnonzero(row.valid):
            _, episode, count, _ = before[n]
            assert row.reward[n] == count + 1
            ends = count + 1 == Counting.num_steps(n, int(episode))
            assert row.terminated[n] == (ends and episode % 2 == 0)
            assert row.truncated[n] == (ends and episode % 2 == 1)
            if not row.first[n]:  # the final observation too: a truncated episode is bootstrapped with it
                assert after[n].tolist() == [n, episode, count + 1, step.discrete[n, 0]]
        for n in np.flatnonzero(row.first):
            assert after[n, 1] > before[n, 1]
        before = after


def test_the_next_episode_follows_termination_at_once_unless_the_env_resets_a_step_late() -> None:
    for mode, at_once in [
        (AutoresetMode.NEXT_STEP, False),
        (AutoresetMode.SAME_STEP, True),
        (AutoresetMode.DISABLED, True),
    ]:
        _, steps = play(_counting(mode), 1)  # the first episode of env 0 takes one step
        assert steps[0].result.terminated[0]
        assert steps[0].result.first[0] == at_once


def test_the_vectorised_cartpole_plays_as_the_single_one() -> None:
    group = make_group("CartPole-v1", 3, EnvOptions(), seed=3, first_env_idx=0)
    assert isinstance(group, VectorGroup)
    first_obs, steps = play(group, 60)
    single = gym.make("CartPole-v1").unwrapped
    for n in range(3):
        single.reset()
        single.state = first_obs["obs"][n].astype(np.float64)
        for step in steps:
            if step.result.first[n]:
                single.reset()
                single.state = step.obs["obs"][n].astype(np.float64)
                continue
            obs, reward, terminated, _, _ = single.step(int(step.discrete[n, 0]))
            np.testing.assert_allclose(step.obs["obs"][n], obs, atol=1e-5)
            assert (step.result.reward[n], step.result.terminated[n]) == (reward, terminated)


def test_the_vectorised_cartpole_is_truncated_at_its_time_limit() -> None:
    options = EnvOptions(env_kwargs='{"max_episode_steps": 5}')
    _, steps = play(make_group("CartPole-v1", 3, options, seed=3, first_env_idx=0), 6)
    assert steps[4].result.truncated.all()
    assert (np.abs(steps[5].obs["obs"]) <= 0.05).all()


@pytest.mark.parametrize("toy", TOYS)
def test_vector_envs_of_every_space_play_as_single_ones(toy: str) -> None:
    env = SyncVectorEnv([TOYS[toy]] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    _, steps = play(VectorGroup(toy, env, 0, 0), 20)
    assert any(step.result.terminated.any() for step in steps)


@pytest.mark.parametrize("batches_final_obs", [False, True])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_final_observations_of_a_dict_space_are_handed_on(mode: AutoresetMode, batches_final_obs: bool) -> None:
    class Named(gym.Env):
        observation_space = gym.spaces.Dict(count=Counting.observation_space, mark=gym.spaces.Discrete(2))
        action_space = Counting.action_space

        def __init__(self) -> None:
            self._env = Counting(env_idx=1)

        def reset(self, **kwargs):
            return {"count": self._env.reset(**kwargs)[0], "mark": 0}, {}

        def step(self, action):
            count, *rest = self._env.step(action)
            return {"count": count, "mark": 1}, *rest

    class Vector(SyncVectorEnv):
        def step(self, actions):
            *rest, infos = super().step(actions)
            if batches_final_obs and "final_obs" in infos:  # as all observations are, with anything in other rows
                last = [obs or {"count": np.zeros(3), "mark": 0} for obs in infos["final_obs"]]
                infos["final_obs"] = {key: np.array([obs[key] for obs in last]) for key in ("count", "mark")}
            return *rest, infos

    _, steps = play(VectorGroup("named", Vector([Named] * 2, autoreset_mode=mode), 0, 0), 30)
    truncated = [step for step in steps if step.result.truncated[0]]
    assert truncated
    for step in truncated:
        assert step.obs["count"][0, 2] == step.episodes[0].num_steps
        assert step.obs["mark"][0].tolist() == [0.0, 1.0]


def test_a_batch_of_actions_is_in_the_action_space_of_the_vector_env() -> None:
    leaves = (
        gym.spaces.Discrete(3, start=-1),
        gym.spaces.Box(-1, 2, (2, 2), np.float32),
        gym.spaces.MultiDiscrete([2, 5], start=[1, 0]),
    )
    rng = np.random.default_rng(0)
    for space in (*leaves, gym.spaces.Tuple(leaves)):
        spec = ActionSpec.of(space)
        discrete = np.array([rng.integers(0, size, 4) for size in spec.discrete_sizes], np.int32).reshape(-1, 4).T
        continuous = rng.normal(0, 2, (4, spec.num_continuous)).astype(np.float32)
        batch = gym.vector.utils.batch_space(space, 4)
        assert batch.contains(_batch_decoder(space, 4)(discrete, continuous))


def test_a_vector_env_that_does_not_say_how_it_resets_is_refused() -> None:
    env = SyncVectorEnv([Counting])
    env.metadata = {}
    with pytest.raises(ValueError, match="mine: its metadata has no 'autoreset_mode'"):
        VectorGroup("mine", env, 0, 0)


def test_a_truncation_without_the_final_observation_is_refused() -> None:
    class Forgetful(SyncVectorEnv):
        def step(self, actions):
            *rest, infos = super().step(actions)
            infos.pop("final_obs", None)
            return *rest, infos

    env = Forgetful([lambda: Counting(env_idx=2)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(ValueError, match=r"mine: an episode was truncated without infos\['final_obs'\]"):
        play(VectorGroup("mine", env, 0, 0), 30)


@pytest.mark.parametrize(
    ("infos_of_ended", "name"),
    [
        ({"final_info": np.array([{}, None])}, "final_info in the infos of a step came as ndarray"),
        ({"episode_stats": [{"wins": 1}, {}]}, "episode_stats in the infos of a step came as list"),
    ],
)
def test_infos_of_ended_episodes_in_an_older_form_are_refused(infos_of_ended: dict, name: str) -> None:
    class Older(SyncVectorEnv):
        def step(self, actions):
            *rest, infos = super().step(actions)
            return *rest, {**infos, **infos_of_ended}

    env = Older([lambda: Counting(env_idx=2)] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    with pytest.raises(ValueError, match=f"mine: {name}: return a dict of arrays"):
        play(VectorGroup("mine", env, 0, 0), 30)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("reward", 1.0, r"reward came as float64 of shape \(\): return numbers of shape \(2,\)"),
        ("reward", np.ones((2, 1)), r"reward came as float64 of shape \(2, 1\)"),
        ("terminated", np.zeros(1, bool), r"terminated came as bool of shape \(1,\): return bool of shape \(2,\)"),
        ("truncated", np.zeros(2, int), r"truncated came as int64 of shape \(2,\): return bool"),
        ("obs", np.zeros((2, 1), np.float32), r"observation 'obs' came as float32 of shape \(1,\)"),
        ("obs", np.zeros(4, np.float32), "observation 'obs' came as float32 of shape"),
    ],
)
def test_what_numpy_would_broadcast_without_a_word_is_named(name: str, value: object, sentence: str) -> None:
    class Wrong(SyncVectorEnv):
        def step(self, actions):
            names = ("obs", "reward", "terminated", "truncated", "infos")
            returned = dict(zip(names, super().step(actions), strict=True))
            return (*(returned | {name: value}).values(),)

    env = Wrong([Counting] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    with pytest.raises(UsageError if name == "obs" else ApiError, match=f"mine: {sentence}"):
        play(VectorGroup("mine", env, 0, 0), 1)


def test_the_number_of_environments_is_not_an_argument_of_the_environment() -> None:
    register_vector_env("many", lambda num_envs: None)
    with pytest.raises(ValueError, match="which --num_envs_per_worker decides: leave it out"):
        make_group("many", 2, EnvOptions(env_kwargs='{"num_envs": 3}'), seed=0, first_env_idx=0)


class Fixed(SyncVectorEnv):
    """Three environments, however many are asked for."""

    def __init__(self, num_envs: int = 3, render_mode: str | None = None) -> None:
        super().__init__([Counting] * 3, autoreset_mode=AutoresetMode.NEXT_STEP)


@pytest.fixture(params=["fixed", "Fixed-v0"])
def fixed(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of `Fixed` among one's own environments and in Gymnasium's registry."""
    register_vector_env("fixed", Fixed)
    gym.register("Fixed-v0", vector_entry_point=Fixed)
    yield request.param
    del gym.registry["Fixed-v0"]


@pytest.mark.parametrize("make", [make_group, make_rendered_group])
def test_a_vector_env_with_another_number_of_environments_is_named(fixed: str, make: Callable[..., EnvGroup]) -> None:
    make(fixed, 3, EnvOptions(), seed=0, first_env_idx=0).close()
    with pytest.raises(ValueError, match=f"{fixed}: it has 3 environments, and was asked for 2: make as many as"):
        make(fixed, 2, EnvOptions(), seed=0, first_env_idx=0)


@pytest.mark.parametrize("make", [make_group, make_rendered_group])
def test_frames_of_a_vector_env_are_skipped_by_itself_alone(make: Callable[..., EnvGroup]) -> None:
    register_vector_env("fixed", Fixed)
    make("fixed", 3, EnvOptions(env_frameskip=1), seed=0, first_env_idx=0).close()
    with pytest.raises(ValueError, match="fixed: env_frameskip is 4, but a vector environment repeats its actions"):
        make("fixed", 3, EnvOptions(env_frameskip=4), seed=0, first_env_idx=0)


def test_frames_of_a_vector_env_of_gymnasiums_registry_are_skipped_by_itself_alone(fixed: str) -> None:
    with pytest.raises(ValueError, match=f"{fixed}: env_frameskip is 4, but a vector environment repeats its actions"):
        make_group(fixed, 3, EnvOptions(env_frameskip=4), seed=0, first_env_idx=0)


def test_statistics_that_a_reset_writes_over_are_those_of_the_episode_that_ended() -> None:
    class OneArray(SyncVectorEnv):
        lengths = np.zeros(2)

        def reset(self, **kwargs):
            self.lengths[:] = 0
            return super().reset(**kwargs)

        def step(self, actions):
            *rest, infos = super().step(actions)
            self.lengths += 1
            return *rest, {**infos, "episode_stats": {"length": self.lengths}}

    env = OneArray([lambda: Counting(env_idx=0)] * 2, autoreset_mode=AutoresetMode.DISABLED)
    _, steps = play(VectorGroup("mine", env, 0, 0), 30)
    episodes = [episode for step in steps for episode in step.episodes]
    assert len(episodes) > 5
    assert all(episode.stats["length"] == episode.num_steps for episode in episodes)
