"""Teams come from the environment or from the flag, whose mistakes are said."""

import gymnasium as gym
import pytest

from sf import envs
from sf.envs import EnvOptions, UsageError
from sf.envs.group import EnvSpec
from sf.envs.teams import agent_names, sides_of, teams_of_package
from sf.envs.toys.matches import CountingMatch

FOUR = '{"num_agents": 4}'


def spec_of(env="toy_match_counting", env_kwargs=FOUR, **options):
    return envs.describe(env, EnvOptions(env_kwargs=env_kwargs, **options))


def test_patterns_name_the_teams_in_their_order():
    by_text = spec_of(teams='[["agent_[12]"], ["agent_0", "*_3"]]')
    assert by_text.agents == ("agent_0", "agent_1", "agent_2", "agent_3")
    assert by_text.teams == (1, 0, 0, 1)
    assert spec_of(teams=[["agent_[12]"], ["agent_0", "*_3"]]).teams == (1, 0, 0, 1)
    assert spec_of().teams == ()
    for make in (envs.make_group, envs.make_rendered_group):
        made = make("toy_match_rps", 1, EnvOptions(teams=[["*_1"], ["*_0"]]), seed=0, first_env_idx=0)
        assert made.spec.teams == (1, 0)
        made.close()


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"teams": "red, blue"}, "teams"),
        ({"teams": '["red_*"]'}, "teams"),
        ({"teams": "[]"}, "teams"),
        ({"teams": [["agent_*"], ["red_*"]]}, "red_"),  # matches no agent
        ({"teams": [["agent_*"], ["agent_2"]]}, "agent_2"),  # in two teams
        ({"teams": [["agent_0"], ["agent_[12]"]]}, "agent_3"),  # in none
        ({"share_reward": "team"}, "share_reward"),
        ({"team_spirit": 0.5}, "team_spirit"),
        ({"team_spirit": 1.5, "teams": [["*"]]}, "team_spirit"),
        ({"zero_sum": True}, "zero_sum"),
        ({"zero_sum": True, "teams": [["*"]]}, "zero_sum"),
        ({"team_spirit": 0.5, "share_reward": "team", "teams": [["*"]]}, "team_spirit"),
        ({"team_spirit": 0.5, "share_reward": True, "teams": [["*"]]}, "team_spirit"),
    ],
)
def test_what_cannot_be_is_one_sentence(options, flag):
    with pytest.raises(UsageError, match=flag):
        spec_of(**options)


def test_true_and_false_of_earlier_runs_share_the_rewards_of_all_or_none():
    assert EnvOptions(share_reward=True) == EnvOptions(share_reward="all")
    assert EnvOptions(share_reward=False) == EnvOptions()
    assert spec_of(share_reward=True).num_agents == 4  # without teams


def test_sides_are_teams_or_agents_where_there_are_no_two_teams():
    def sides(*teams):
        return sides_of(EnvSpec(gym.spaces.Dict(), gym.spaces.Discrete(2), num_agents=3, teams=teams))

    assert sides() == sides(0, 0, 0) == (0, 1, 2)
    assert sides(1, 0, 1) == (1, 0, 1)
    assert sides(2, 7, 2) == (0, 1, 0)


class Battle(CountingMatch):
    __module__ = "magent2.environments.battle"


@pytest.mark.parametrize(
    ("names", "teams"),
    [
        (("red_0", "red_1", "blue_0"), (0, 0, 1)),
        (("predator_0", "prey_0", "prey_1"), (0, 1, 1)),
        (("redmelee_0", "redranged_0", "bluemele_0", "blueranged_0"), (0, 0, 1, 1)),
    ],
)
def test_magents_names_say_the_teams(names, teams):
    assert teams_of_package(Battle(), names) == teams
    assert teams_of_package(CountingMatch(), names) == ()


def test_environments_that_know_their_teams_say_so():
    pytest.importorskip("numba")
    assert spec_of("rts_mini_match", "{}").teams == (0, 1)
    assert spec_of("rts_mini", "{}").teams == ()
    pytest.importorskip("pyspiel")
    bridge = spec_of("openspiel:bridge", '{"use_double_dummy_result": false}')  # what takes 20 s to set up
    assert (bridge.teams, agent_names(bridge)[3]) == ((0, 1, 0, 1), "agent_3")
    assert spec_of("openspiel:tic_tac_toe", "{}").teams == ()
