"""What `sf.envs.group` promises, for every kind of group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from compiled_engine import compile_engine
from group_driver import play

from sf.envs import EnvGroup, EnvOptions, make_group
from sf.envs.groups.gym import GymGroup
from sf.envs.groups.vector import VectorGroup
from sf.envs.toys.family import TOY

NUM_ENVS = 2
TASKS = f"tasks:{Path(__file__).parents[2] / 'data' / 'tasks' / 'toys.yaml'}"


def _named(env_id: str, **options: object) -> Callable[[], EnvGroup]:
    return lambda: make_group(env_id, NUM_ENVS, EnvOptions(**options), seed=5, first_env_idx=2)


def _time_limited() -> EnvGroup:
    envs = [gym.make("CartPole-v1", max_episode_steps=9 + n) for n in range(NUM_ENVS)]
    return GymGroup("short", envs, 5, 2)


def _vector(mode: gym.vector.AutoresetMode) -> Callable[[], EnvGroup]:
    def make() -> EnvGroup:
        env_fns = [lambda: gym.make("CartPole-v1", max_episode_steps=15)] * NUM_ENVS
        return VectorGroup("short", gym.vector.SyncVectorEnv(env_fns, autoreset_mode=mode), 5, 2)

    return make


GROUPS = {
    **{toy: _named(toy) for toy in TOY.env_ids()},
    "task_of_several": _named(TASKS, task="toy_memory"),
    "gymnasium_time_limit": _time_limited,
    "gymnasium_frameskip": _named("MountainCarContinuous-v0", env_frameskip=7),
    "vector_entry_point": _named("CartPole-v1", env_kwargs='{"max_episode_steps": 15}'),
    "vector_next_step": _vector(gym.vector.AutoresetMode.NEXT_STEP),
    "vector_same_step": _vector(gym.vector.AutoresetMode.SAME_STEP),
    "vector_disabled": _vector(gym.vector.AutoresetMode.DISABLED),
    "atari_truncated": _named("atari_pong", atari_clip_rewards=False, env_kwargs='{"max_num_frames_per_episode": 60}'),
    "atari_terminated": _named("atari_breakout", atari_clip_rewards=False),
    "pong_of_two": _named(
        "pettingzoo:atari/pong_v3", atari_clip_rewards=False, atari_sticky=0.25, env_kwargs='{"max_cycles": 100}'
    ),
    "match_of_agents_that_come_back": _named(
        "toy_match_counting", env_kwargs='{"num_agents": 3, "episodes_per_match": 3}'
    ),
    "match_of_two_kinds": _named("kinds_env:TwoKinds", show_agent=False),
    "match_frameskip": _named("toy_match_counting", env_frameskip=3),
    "pettingzoo_all_truncated": _named("pettingzoo:classic/rps_v2"),
    "pettingzoo_agents_die": _named("pettingzoo:butterfly/knights_archers_zombies_v11"),
    "openspiel_turns": _named("openspiel:leduc_poker"),
    "openspiel_at_once": _named("openspiel:goofspiel", env_kwargs='{"num_cards": 4}'),
    "openspiel_alone": _named("openspiel:blackjack"),
    "rts_against_ai": _named("rts_mini", env_kwargs='{"max_ticks": 700, "history": 2}'),
    "rts_match_with_mask": _named("rts_flag_match", env_kwargs='{"max_ticks": 300, "actions": "by_type"}'),
    "rts_tower": _named("rts_tower"),
    "doom_match": _named("doom_duel_bots", doom_match_s=1, doom_shaping=False),
}
NUM_STEPS = {"gymnasium_frameskip": 320, "atari_truncated": 40, "atari_terminated": 180, "pettingzoo_agents_die": 200}


@pytest.fixture(scope="module", params=GROUPS)
def name(request: pytest.FixtureRequest) -> str:
    for prefix, package in (("openspiel", "pyspiel"), ("rts", "numba"), ("pong_of_two", "multi_agent_ale_py")):
        if request.param.startswith(prefix):
            pytest.importorskip(package)
    if request.param.startswith("rts"):
        compile_engine()
    return request.param


@pytest.fixture(scope="module")
def played(name: str):
    """Played once for all tests, which only look at it."""
    return play(GROUPS[name](), NUM_STEPS.get(name, 60))


def test_flags_follow_the_life_of_an_episode(played) -> None:
    _, steps = played
    num_actors = len(steps[0].result.reward)
    for n in range(num_actors):
        late = False  # an earlier row ended an episode whose successor has not begun
        for step in steps:
            row = step.result
            assert row.valid[n] == (not late)
            if late:
                assert row.first[n] or num_actors > NUM_ENVS  # only an agent of a match may stay away for longer
                assert row.reward[n] == 0.0
                assert not row.terminated[n]
                assert not row.truncated[n]
                late = not row.first[n]
                continue
            assert not (row.terminated[n] and row.truncated[n])
            assert not (row.truncated[n] and row.first[n])
            assert row.terminated[n] or not row.first[n]
            late = bool(row.truncated[n] or (row.terminated[n] and not row.first[n]))


def test_an_episode_is_reported_by_the_step_that_ends_it_with_its_return_and_length(name: str, played) -> None:
    _, steps = played
    hidden = name in ("vector_same_step", "vector_disabled")  # the unseen first step of an episode counts as well
    num_actors = len(steps[0].result.reward)
    total, length, num_episodes = np.zeros(num_actors), np.zeros(num_actors, int), 0
    for step in steps:
        row = step.result
        total += row.reward + np.float32(~row.valid * hidden)  # a step of CartPole pays 1
        length += row.valid | hidden
        ended = row.terminated | row.truncated
        assert [episode.actor_idx for episode in step.episodes] == np.flatnonzero(ended).tolist()
        for episode in step.episodes:
            n = episode.actor_idx
            assert episode.episode_return == pytest.approx(total[n], abs=1e-4)
            assert episode.num_steps == length[n]
            assert episode.num_frames >= length[n]
            num_episodes += 1
        total[ended], length[ended] = 0.0, 0
    assert num_episodes >= 2


def test_observations_are_in_the_declared_space_of_a_group_that_may_be_closed_before_its_reset(name, played) -> None:
    first_obs, steps = played
    group = GROUPS[name]()
    group.close()
    for obs in [first_obs, *(step.obs for step in steps)]:
        assert obs.keys() == group.spec.obs_space.keys()
        for key, box in group.spec.obs_space.items():
            assert obs[key].dtype == box.dtype
            for row in obs[key]:
                assert box.contains(row)


def test_the_same_seed_gives_the_same_rollout(name: str, played) -> None:
    if name == "doom_match":
        pytest.skip("bots come in when the engine lets them, which is a matter of timing")
    first_obs, steps = played
    again_obs, again = play(GROUPS[name](), len(steps))
    for key, obs in first_obs.items():
        np.testing.assert_array_equal(obs, again_obs[key])
    for step, repeated in zip(steps, again, strict=True):
        np.testing.assert_array_equal(step.result.reward, repeated.result.reward)
        for key, obs in step.obs.items():
            np.testing.assert_array_equal(obs, repeated.obs[key])
