import pytest

from sf.envs.doom.group import describe
from sf.envs.doom.matches.tasks import match_setup
from sf.envs.doom.shaping import AGAINST_BOTS, SELF_PLAY
from sf.envs.errors import UsageError
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ActionSpec


@pytest.mark.parametrize(
    ("env_id", "num_agents", "num_bots", "shaping"),
    [
        ("doom_duel", 2, 0, SELF_PLAY),
        ("doom_deathmatch", 4, 0, SELF_PLAY),
        ("doom_duel_bots", 1, 1, AGAINST_BOTS),
        ("doom_deathmatch_bots", 1, 7, AGAINST_BOTS),
    ],
)
def test_a_task_has_its_players_for_four_minutes_and_its_rewards(env_id, num_agents, num_bots, shaping):
    setup = match_setup(env_id, EnvOptions())
    assert (setup.num_agents, setup.num_bots, setup.time_limit) == (num_agents, num_bots, 4 * 60 * 35)
    assert (setup.wad.name, setup.map_name) == ("cig.wad", "MAP02")
    spec = describe(env_id, EnvOptions())
    assert (spec.num_agents, spec.frameskip) == (num_agents, 2)
    assert spec.shaping == shaping.weights
    assert describe(env_id, EnvOptions(doom_shaping=False)).shaping == {}
    assert ActionSpec.of(spec.action_space).discrete_sizes == (3, 3, 8, 2, 2, 2, 21)  # every control of a human player
    assert spec.bots == ({"doom": -1} if num_agents > 1 else {})


def test_agents_bots_wad_and_map_can_be_chosen():
    options = EnvOptions(
        doom_num_agents=3, doom_num_bots=2, doom_wad="freedoom2.wad", doom_map="map07", doom_match_s=60
    )
    setup = match_setup("doom_deathmatch", options)
    assert (setup.num_agents, setup.num_bots, setup.time_limit) == (3, 2, 2100)
    assert (setup.wad.name, setup.wad_is_complete, setup.map_name) == ("freedoom2.wad", True, "MAP07")
    assert match_setup("doom_duel", EnvOptions(doom_wad="multi_duel.wad")).map_name == "MAP01"
    assert match_setup("doom_duel_bots", EnvOptions(doom_wad="multi_duel.wad")).map_name == "MAP01"
    assert match_setup("doom_duel", EnvOptions(doom_wad="cig.wad")).map_name == "MAP02"


def test_teams_are_of_one_size_and_no_bot_takes_a_place_in_them():
    spec = describe("doom_deathmatch", EnvOptions(doom_num_agents=6, doom_teams=3))
    assert (spec.teams, spec.bots) == ((0, 0, 1, 1, 2, 2), {})
    assert describe("doom_deathmatch", EnvOptions()).teams == ()


@pytest.mark.parametrize(
    ("env_id", "flags"),
    [
        ("doom_duel", {"doom_num_agents": 3}),
        ("doom_duel", {"doom_num_bots": 1}),
        ("doom_deathmatch", {"doom_num_agents": 9, "doom_num_bots": 8}),
        ("doom_deathmatch", {"doom_teams": 3}),  # of four agents
        ("doom_deathmatch", {"doom_teams": 2, "doom_num_bots": 2}),
        ("doom_deathmatch", {"doom_teams": 1}),
        ("doom_duel", {"doom_map": "map03"}),
        ("doom_duel", {"doom_wad": "basic.wad"}),  # nowhere to start from
        ("doom_deathmatch", {"doom_num_agents": 3, "doom_wad": "multi_duel.wad"}),  # two places
        *(("doom_deathmatch", {"doom_num_agents": 0}), ("doom_deathmatch", {"doom_num_bots": -1})),
        *(("doom_duel", {"doom_bot_difficulty": 101}), ("doom_duel", {"doom_match_s": 0.0})),
    ],
)
def test_what_cannot_be_played_is_refused_by_its_flag_before_anything_starts(env_id, flags):
    with pytest.raises(UsageError, match=next(iter(flags))):
        describe(env_id, EnvOptions(**flags))
