"""Players that look ahead win against those that do not, and say what they cannot play."""

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from sf import envs  # noqa: E402
from sf.envs import EnvOptions, UsageError  # noqa: E402
from sf.evaluation.play.contestants import find_contest  # noqa: E402
from sf.evaluation.play.episodes import Play, make_lineups  # noqa: E402
from sf.evaluation.play.games.search_player import best_move  # noqa: E402
from sf.evaluation.play.opponents import Opponent  # noqa: E402
from sf.evaluation.play.torch_policy import TorchPolicy  # noqa: E402
from sf.search.search import GUMBEL, SearchSettings  # noqa: E402


def opponent(name, env, kwargs="{}"):
    options = EnvOptions(env_kwargs=kwargs)
    spec = envs.describe(env, options)
    return Opponent.named(name, env, options, spec.native_obs_space, spec.action_space)


def score(env, players, num_episodes=10):
    """Returns the mean return of the first player against the second."""
    group = envs.make_group(env, 4, EnvOptions(), seed=1, first_env_idx=0)
    lineups = make_lineups(2, 2, num_episodes, seed=1)
    going = Play(group, players, lineups, range(4), 4, 1, deterministic=False)
    returns = []
    while not going.is_done:
        returns += [each.episode_return for each in going.step() if each.policy_idx == 0]
    assert len(returns) == num_episodes
    return np.mean(returns)


def test_a_search_by_random_play_never_loses_a_small_game():
    players = [opponent(name, "openspiel:tic_tac_toe").player() for name in ("search:200", "openspiel:mcts:200")]
    assert score("openspiel:tic_tac_toe", players) >= 0
    players[1] = opponent("random", "openspiel:tic_tac_toe").player()
    assert score("openspiel:tic_tac_toe", players) > 0.5


@pytest.mark.parametrize("game", ["backgammon", "2048"])
def test_a_search_goes_through_chance_and_rewards_on_the_way(game):
    env = f"openspiel:{game}"
    group = envs.make_group(env, 1, EnvOptions(), seed=1, first_env_idx=0)
    num = group.spec.num_agents
    going = Play(group, [opponent("search:16", env).player()], np.zeros((1, num), int), range(1), 1, 1, False)
    for _ in range(6):
        going.step()


def test_a_policy_that_searches_wins_against_itself_alone():
    contest = find_contest("zoo/connect_four", ("zoo/connect_four",), "latest", None).searching(
        SearchSettings(32, GUMBEL)
    )
    (_, searching), (name, alone) = contest.players.items()
    assert score("openspiel:connect_four", [searching.player(), TorchPolicy(alone, name)]) >= 0.4


def test_a_search_says_which_moves_it_expects_and_what_it_has_tried():
    group = envs.make_group("openspiel:connect_four", 1, EnvOptions(), seed=1, first_env_idx=0)
    players = [opponent(name, "openspiel:connect_four").player() for name in ("search:64", "random")]
    going = Play(group, players, np.array([[0, 1], [1, 1]]), range(1), 1, 1, False)  # it sits out the second match
    num_thoughts = 0
    while not going.is_done:
        state = group.game(0).clone()
        going.step()
        for match_idx, policy_idx, thought in going.thoughts():
            assert (match_idx, policy_idx) == (0, 0)
            assert thought.names == [state.action_to_string(move) for move in thought.root.action.tolist()]
            assert thought.line[0] == state.action_to_string(best_move(thought.root))
            for name in thought.line:
                state.apply_action(state.string_to_action(name))  # raises where it is not legal
            num_thoughts += 1
    assert num_thoughts >= 4


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("search:0", "openspiel:connect_four"),
        ("search:ten", "openspiel:connect_four"),
        ("search:10:nowhere", "openspiel:connect_four"),
        ("search:10:zoo/CartPole-v1", "openspiel:connect_four"),
        ("search:10", "openspiel:kuhn_poker"),  # hidden
        ("search:10", "openspiel:goofspiel"),  # at once
    ],
)
def test_what_cannot_search_is_refused(name, env):
    with pytest.raises(UsageError):
        opponent(name, env)
