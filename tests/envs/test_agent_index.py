"""The index of an agent among those of its environment, as an observation."""

import numpy as np
import pytest
from group_driver import play
from kinds_env import TwoKinds

from sf import envs
from sf.envs import EnvOptions, UsageError
from sf.envs.added.agent_index import AGENT_INDEX
from sf.envs.spaces import space_json
from sf.envs.spaces.observations import ObsWriter

envs.register_parallel_env("two_kinds", TwoKinds)
SHOWN = EnvOptions(show_agent=True)


@pytest.mark.parametrize("env", ["toy_match_pennies", "two_kinds", "toy_match_counting"])
def test_each_agent_sees_its_index_in_every_row(env):
    group = envs.make_group(env, 2, SHOWN, seed=0, first_env_idx=0)
    assert group.spec == envs.describe(env, SHOWN)
    first, steps = play(group, 12)
    expected = np.tile(np.eye(group.spec.num_agents), (2, 1)).tolist()
    for obs in (first, *(step.obs for step in steps)):
        assert obs[AGENT_INDEX].tolist() == expected


def test_a_checkpoint_keeps_it_among_the_observations():
    spec = envs.describe("toy_match_pennies", SHOWN)
    kept = space_json.from_json(space_json.to_json(spec.native_obs_space))
    assert ObsWriter("env", kept).space == spec.obs_space
    assert AGENT_INDEX in kept.spaces


@pytest.mark.parametrize(
    ("env", "is_shown"), [("toy_match_pennies", False), ("two_kinds", True), ("CartPole-v1", False)]
)
def test_it_is_shown_by_itself_where_agents_differ(env, is_shown):
    assert (AGENT_INDEX in envs.describe(env, EnvOptions()).obs_space.spaces) == is_shown
    assert AGENT_INDEX not in envs.describe(env, EnvOptions(show_agent=False)).obs_space.spaces


@pytest.mark.parametrize(("num_agents", "is_shown"), [(2, False), (4, True), (34, False)])
def test_it_is_shown_by_itself_to_the_members_of_a_team_that_is_no_crowd(num_agents, is_shown):
    red, blue = ([f"agent_{n}" for n in range(first, num_agents, 2)] for first in (0, 1))
    options = EnvOptions(env_kwargs={"num_agents": num_agents}, teams=[red, blue])
    group = envs.make_group("toy_match_counting", 1, options, seed=0, first_env_idx=0)
    assert group.spec == envs.describe("toy_match_counting", options)
    assert (AGENT_INDEX in group.spec.obs_space.spaces) == is_shown


def test_it_is_refused_for_one_agent():
    with pytest.raises(UsageError, match="show_agent"):
        envs.describe("CartPole-v1", SHOWN)
