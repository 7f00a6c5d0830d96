from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from group_driver import play
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sf.envs import EnvOptions, make_group, make_rendered_group, register_vector_env
from sf.envs.errors import UsageError
from sf.envs.groups.vector import VectorGroup
from sf.envs.spaces.actions import ActionSpec, decoder
from sf.envs.toys.single import Counting


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
        assert batch.contains(decoder(space, 4)(discrete, continuous))


def _of(wrong: dict[str, Any], mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> VectorGroup:
    """wrong: changes what a step returns."""

    class Wrong(SyncVectorEnv):
        def step(self, actions):
            names = ("obs", "reward", "terminated", "truncated", "infos")
            returned = dict(zip(names, super().step(actions), strict=True))
            return (*(returned | wrong).values(),)

    return VectorGroup("mine", Wrong([lambda: Counting(env_idx=2)] * 2, autoreset_mode=mode), 0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("reward", 1.0),
            ("reward", np.ones((2, 1))),
            ("terminated", np.zeros(1, bool)),
            ("truncated", np.zeros(2, int)),
        ),
        *(("obs", np.zeros((2, 1), np.float32)), ("obs", np.zeros(4, np.float32))),
        ("infos", {"final_info": np.array([{}, None])}),
        ("infos", {"episode_stats": [{"wins": 1}, {}]}),
    ],
)
def test_what_numpy_would_broadcast_without_a_word_or_an_older_form_has_is_named(name: str, value: object) -> None:
    named = {"obs": "observation 'obs'", "infos": "final_info|episode_stats"}.get(name, name)
    with pytest.raises(UsageError, match=f"^mine: ({named})"):
        play(_of({name: value}), 30)


def test_a_vector_env_that_does_not_say_how_it_resets_or_hides_final_observations_is_refused() -> None:
    env = SyncVectorEnv([Counting])
    env.metadata = {}
    with pytest.raises(UsageError, match="autoreset_mode"):
        VectorGroup("mine", env, 0, 0)
    with pytest.raises(UsageError, match="final_obs"):
        play(_of({"infos": {}}, AutoresetMode.SAME_STEP), 30)


class Fixed(SyncVectorEnv):
    """Three environments, however many are asked for."""

    def __init__(self, num_envs: int = 3, render_mode: str | None = None) -> None:
        super().__init__([Counting] * 3, autoreset_mode=AutoresetMode.NEXT_STEP)


@pytest.mark.parametrize("make", [make_group, make_rendered_group])
@pytest.mark.parametrize("name", ["fixed", "Fixed-v0"])
def test_a_vector_env_has_its_own_number_of_environments_and_skips_frames_itself(name: str, make: Any) -> None:
    register_vector_env("fixed", Fixed)
    gym.register("Fixed-v0", vector_entry_point=Fixed)
    try:
        make(name, 3, EnvOptions(env_frameskip=1), seed=0, first_env_idx=0).close()
        with pytest.raises(UsageError, match=f"^{name}: .*3 environments"):
            make(name, 2, EnvOptions(), seed=0, first_env_idx=0)
        if (name, make) != ("Fixed-v0", make_rendered_group):
            with pytest.raises(UsageError, match=f"^{name}: env_frameskip is 4"):
                make(name, 3, EnvOptions(env_frameskip=4), seed=0, first_env_idx=0)
        with pytest.raises(UsageError, match="num_envs"):
            make("fixed", 2, EnvOptions(env_kwargs='{"num_envs": 3}'), seed=0, first_env_idx=0)
    finally:
        del gym.registry["Fixed-v0"]


def test_the_next_episode_follows_termination_at_once_unless_the_env_resets_a_step_late() -> None:
    for mode, at_once in [
        (AutoresetMode.NEXT_STEP, False),
        (AutoresetMode.SAME_STEP, True),
        (AutoresetMode.DISABLED, True),
    ]:
        _, steps = play(_counting(mode), 1)  # the first episode of env 0 takes one step
        assert steps[0].result.terminated[0]
        assert steps[0].result.first[0] == at_once


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
