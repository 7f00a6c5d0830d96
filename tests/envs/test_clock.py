"""The number of steps that an episode has lasted, which the critic is shown."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from sf import envs
from sf.envs import EnvOptions, StepResult
from sf.envs.added.clock import CLOCK, ClockedGroup, with_clock
from sf.envs.groups.vector import VectorGroup
from sf.envs.spaces.actions import ActionSpec


def rows_of(group):
    return {key: list(np.zeros((group.num_actors, *box.shape), box.dtype)) for key, box in group.spec.obs_space.items()}


@pytest.mark.parametrize("env", ["toy_counting", "toy_match_counting", "CartPole-v1"])
def test_it_is_0_in_the_first_step_of_an_episode_and_counts_those_that_were_acted(env):
    group = ClockedGroup(envs.make_group(env, 3, EnvOptions(), seed=1, first_env_idx=0))
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
    clocked = with_clock(spec)
    assert clocked.obs_space["obs"] == spec.obs_space["obs"]
    assert clocked.native_obs_space == spec.native_obs_space  # what a checkpoint says, and what plays is asked for


class Counting(gym.Env):
    """Shows how many steps its episode has lasted; truncated after five, and by chance terminated after one or three.

    So an episode of one step may come after one that was truncated.
    """

    observation_space = gym.spaces.Box(0, 9, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.num_steps += 1
        terminated = self.num_steps in (1, 3) and self.np_random.random() < 0.5
        return np.full(1, self.num_steps, np.float32), 0.0, bool(terminated), self.num_steps == 5, {}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_it_tells_the_time_in_each_way_of_resetting(mode):
    vector = gym.vector.SyncVectorEnv([Counting] * 4, autoreset_mode=mode)
    group = ClockedGroup(VectorGroup("counting", vector, seed=0, first_env_idx=0))
    rows, result = rows_of(group), StepResult.empty(4)
    group.reset(rows)
    num_late = 0
    for _ in range(60):
        group.step(np.zeros((4, 1), np.int32), np.zeros((4, 0), np.float32), rows, result)
        assert np.array_equal(rows[CLOCK], rows["obs"])
        num_late += int((result.first & ~result.valid).sum())
    assert num_late > 5
    group.close()
