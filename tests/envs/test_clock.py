"""The number of steps that an episode has lasted, which the critic is shown."""

import gymnasium as gym
import numpy as np
import pytest

from sf import envs
from sf.envs import EnvOptions, StepResult
from sf.envs.clock import CLOCK, ClockedGroup, with_clock
from sf.envs.spaces.actions import ActionSpec


def rows_of(group):
    return {key: list(np.zeros((group.num_actors, *box.shape), box.dtype)) for key, box in group.spec.obs_space.items()}


@pytest.mark.parametrize("env", ["toy_counting", "toy_match_counting", "CartPole-v1"])
def test_it_is_0_in_the_first_step_of_an_episode_and_counts_those_that_were_acted(env):
    group = ClockedGroup(envs.make_group(env, 3, EnvOptions(), seed=1, first_env_idx=0), env)
    rng = np.random.default_rng(0)
    rows, result = rows_of(group), StepResult.empty(group.num_actors)
    spec = ActionSpec.of(group.spec.action_space)
    expected = np.zeros(group.num_actors)
    num_ends = 0
    group.reset(rows)
    assert np.concatenate(rows[CLOCK]).tolist() == expected.tolist()
    for _ in range(200):
        discrete = rng.integers(spec.discrete_sizes[0], size=(group.num_actors, 1), dtype=np.int32)
        episodes = group.step(discrete, np.zeros((group.num_actors, 0), np.float32), rows, result)
        for n in range(group.num_actors):
            expected[n] = 0 if result.first[n] else expected[n] + bool(result.valid[n])
        assert np.concatenate(rows[CLOCK]).tolist() == expected.tolist()
        for episode in episodes:
            num_ends += 1
            if result.truncated[episode.actor_idx]:  # its final observation is shown
                assert expected[episode.actor_idx] == episode.num_steps
    assert num_ends > 5
    group.close()


def test_the_policys_observations_stay_what_they_were():
    spec = envs.describe("CartPole-v1", EnvOptions())
    clocked = with_clock(spec, "CartPole-v1")
    assert clocked.obs_space["obs"] == spec.obs_space["obs"]
    assert clocked.native_obs_space == spec.native_obs_space  # what a checkpoint says, and what plays is asked for


def test_an_observation_of_that_name_is_refused():
    box = gym.spaces.Box(0, 1, (1,))
    spec = envs.EnvSpec(gym.spaces.Dict({CLOCK: box}), gym.spaces.Discrete(2))
    with pytest.raises(ValueError, match="mine has an observation called 'critic_clock': rename it, or"):
        with_clock(spec, "mine")
