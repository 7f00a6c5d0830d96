"""Bots of the engine in the place of agents: who plays, what is seen, and what is reported."""

import numpy as np
import pytest
from doom_stage import Stage

from sf.envs.doom.group import make_group, make_rendered_group
from sf.envs.group import StepResult
from sf.envs.options import EnvOptions
from sf.envs.spaces.observations import obs_arrays

NOTHING = (0, 0, 0, 0, 0, 0, 10)
BOT = (-1,) * 7


def play(stage: Stage, *actions) -> list:
    """An episode, from its first step on: what is reported of it. Then the step that resets."""
    episodes = []
    while not episodes:
        episodes = stage.step(*actions)
    assert stage.step(*actions) == []
    return episodes


@pytest.fixture(scope="module")
def duel():
    group = make_group("doom_duel", 1, EnvOptions(doom_match_s=1, doom_bot_difficulty=50), seed=3, first_env_idx=0)
    yield Stage(group)
    group.close()


def test_a_bot_takes_the_place_of_either_agent_from_the_second_step_on_and_episodes_alternate(duel):
    """The first actions were chosen by the picture of another match. See `sf.envs.group`: as after a truncation."""
    (match,) = duel.group._games
    engines = []
    for actions in [(NOTHING, NOTHING), (NOTHING, BOT), (BOT, NOTHING), (NOTHING, NOTHING)]:
        assert duel.step(*actions) == []
        has_bot = BOT in actions
        assert duel.result.valid.tolist() == [not has_bot] * 2
        assert duel.result.first.tolist() == [has_bot] * 2
        engines.append(match.shown())
        assert len(set(engines[-1])) == 2 - has_bot
        agent = actions.index(NOTHING)
        if has_bot:
            game, begins_at = match.shown()[agent], match.shown()[agent].get_episode_time()
            server = game.get_server_state()
            assert server.player_count == 2
            assert server.players_names[1].startswith("Bot")
            assert duel.image(agent).any()
            assert not duel.image(1 - agent).any()
            duel.step(*actions)
            assert game.get_episode_time() == begins_at + 2  # the frameskip of a duel: the first actions took no tic
            assert match.returns() == [0.0, 0.0]
        episodes = play(duel, *actions)
        assert [episode.actor_idx for episode in episodes] == [0, 1]
        assert episodes[agent].stats["tie"] == 1
        assert episodes[agent].stats["true_objective"] == 0  # a win, as against an agent
        if has_bot:
            assert episodes[1 - agent].stats == {"frags": 0, "win": 0, "tie": 1, "true_objective": 0}
    assert engines[1] == engines[2]  # the same engines again
    assert engines[0] == engines[3]


def test_frags_are_those_that_the_engine_counts_and_the_winner_has_more(stage):
    duel = stage("doom_duel", doom_match_s=15, doom_wad="multi_duel.wad", doom_bot_difficulty=100)  # one room
    (match,) = duel.group._games
    rng = np.random.default_rng(0)
    episodes, before = [], None
    while not episodes:
        episodes = duel.step(tuple(rng.integers(size) for size in (3, 3, 8, 2, 2, 2, 21)), BOT)
        server = match.shown()[0].get_server_state()
        before = before or server.players_frags[:2]
    of_agent, of_bot = episodes
    frags = [now - first for now, first in zip(server.players_frags[:2], before, strict=True)]
    assert [of_agent.episode_return, of_bot.episode_return] == frags
    assert frags[0] != frags[1]
    assert (of_agent.stats["win"], of_bot.stats["win"]) == (frags[0] > frags[1], frags[1] > frags[0])
    assert of_agent.stats["deaths"] > 0
    assert (of_bot.num_steps, of_bot.num_frames) == (of_agent.num_steps, of_agent.num_frames) == (263, 525)


def test_a_deathmatch_keeps_its_own_bots_and_its_other_agents(stage):
    match = stage("doom_deathmatch", doom_num_agents=3, doom_num_bots=1, doom_match_s=1)
    match.step(NOTHING, BOT, NOTHING)
    (played,) = match.group._games
    assert all(game.get_server_state().player_count == 4 for game in played.shown())
    assert [match.image(n).any() for n in range(3)] == [True, False, True]
    assert [episode.actor_idx for episode in play(match, NOTHING, BOT, NOTHING)] == [0, 1, 2]


def test_the_weights_of_an_agent_are_its_own_beside_a_bot_and_without_it_and_bots_are_not_alone(duel):
    (match,) = duel.group._games
    of_death = np.array([1.0 if name == "death_up" else 0.0 for name in duel.group.spec.shaping])
    for told, actions in [(-7, (BOT, NOTHING)), (-5, (BOT, NOTHING)), (None, (NOTHING, NOTHING))]:
        duel.step(*actions)
        if told is not None:
            duel.group.set_shaping(1, told * of_death)
        match.shown()[1].send_game_command("kill")
        reward, episodes = 0.0, []
        while not episodes:
            episodes = duel.step(*actions)
            reward += duel.result.reward[1]
        assert reward == (told or -5)
        duel.step(*actions)
    duel.step(NOTHING, BOT)  # another agent in the engine that the weights were given to
    match.shown()[0].send_game_command("kill")
    of_agent = play(duel, NOTHING, BOT)[0]
    assert of_agent.stats["deaths"] == 1
    assert -3 < of_agent.stats["shaped_return"] < -1
    with pytest.raises(RuntimeError, match="bot:doom"):
        duel.step(BOT, BOT)


def test_a_film_of_a_match_with_a_bot_shows_its_agent():
    group = make_rendered_group("doom_duel", 1, EnvOptions(doom_match_s=1), seed=3, first_env_idx=0)
    try:
        spec = group.spec
        obs = {key: list(rows) for key, rows in obs_arrays(spec.obs_space, 2).items()}
        group.reset(obs)
        actions = np.array([BOT, NOTHING], np.int32)
        continuous, result = np.zeros((2, 0), np.float32), StepResult.empty(2)
        for _ in range(40):  # an episode, and the beginning of another with a bot
            group.step(actions, continuous, obs, result)
        of_bot, of_agent = group.pictures()
        assert len(of_bot) == len(of_agent) > 70
        assert all((left == right).all() for left, right in zip(of_bot, of_agent, strict=True))
        assert of_agent[0].shape == (480, 640, 3)
    finally:
        group.close()
