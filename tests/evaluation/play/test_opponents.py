import re
import sys
from collections import Counter
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from kinds_env import Movers
from untrained import untrained

from sf import envs
from sf.envs import EnvError, EnvOptions, UsageError
from sf.envs.spaces.actions import ACTION_MASK, ActionSpec
from sf.evaluation.play.contestants import find_contest, require_spaces
from sf.evaluation.play.episodes import Play, Played
from sf.evaluation.play.opponents import Opponent, RandomPlayer, is_name
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.evaluation.results import Evaluation
from sf.storage import checkpoint
from sf.tools.commands import evaluate

PLAYERS = """
import numpy as np

calls = []

def echo(obs):
    calls.append(obs)
    return int(obs)

def wrong(obs):
    return 99

def broken(obs):
    raise KeyError("door")

number = 3

class Counting:
    made = 0

    def __init__(self):
        self.number = Counting.made
        Counting.made += 1
        self.steps = None

    def reset(self):
        self.steps = -1

    def act(self, obs):
        self.steps += 1
        return self.steps % 3"""

MOVER = """

def move(obs):
    calls.append(obs)
    if "ears" in obs:
        return 1, np.array([4.0], np.float32)
    return np.array([2, 3]), np.array([0.0, 1.0, 4.0], np.float32)
"""


class Steps(gym.Env):
    """Three steps. The observation is the number of the step before."""

    observation_space = gym.spaces.Discrete(3)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return 0, {}

    def step(self, action):
        reward = float(action == self.t)
        self.t += 1
        return min(self.t, 2), reward, self.t == 3, False, {}


envs.register_env("three_steps", Steps)


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_players.py").write_text(PLAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("own_players", None)


def opponent(name):
    return Opponent(name, "Steps", EnvOptions(), Steps.observation_space, Steps.action_space)


def played_by(players, lineups, num_envs=2):
    group = envs.make_group("three_steps", num_envs, EnvOptions(), seed=0, first_env_idx=0)
    play = Play(group, players, np.array(lineups), range(num_envs), num_envs, seed=0, deterministic=False)
    played = []
    while not play.is_done:
        played += play.step()
    return played


def test_random_moves_are_uniform_among_those_that_are_allowed():
    mask = np.tile(np.array([[1, 0, 1, 0, 1]], np.int8), (3000, 1))
    actors = RandomPlayer(ActionSpec((5,), 1)).actors(3000, seed=0)
    actions = actors.act({ACTION_MASK: mask}, np.zeros(3000, bool))
    counts = Counter(actions.discrete[:, 0].tolist())
    assert set(counts) == {0, 2, 4}
    assert all(900 < count < 1100 for count in counts.values())
    assert actions.continuous.shape == (3000, 1)
    assert np.abs(actions.continuous).max() <= 1
    assert np.isnan(actions.value).all()
    again = RandomPlayer(ActionSpec((5,), 1)).actors(3000, seed=0).act({ACTION_MASK: mask}, np.zeros(3000, bool))
    np.testing.assert_array_equal(again.discrete, actions.discrete)


def test_a_function_gets_observations_and_gives_actions_of_the_environment_itself(module):
    policy = TorchPolicy(untrained("three_steps"), "policy")
    played = played_by([policy, opponent("own_players:echo").player()], [[0], [1]] * 3)
    assert len(played) == 6
    assert {each.episode_return for each in played if each.policy_idx == 1} == {3.0}
    calls = sys.modules["own_players"].calls
    assert set(calls) == {0, 1, 2}
    assert all(isinstance(obs, int) for obs in calls)


def test_each_actor_has_an_object_of_a_class_that_is_reset_for_each_episode(module):
    played = played_by([opponent("own_players:Counting").player()], [[0]] * 6)
    assert [each.episode_return for each in played] == [3.0] * 6
    assert sys.modules["own_players"].Counting.made == 2


def test_a_player_is_asked_only_where_an_action_is_allowed(module):
    obs_space = gym.spaces.Dict({"turn": gym.spaces.Discrete(3), ACTION_MASK: gym.spaces.MultiBinary(3)})
    player = Opponent("own_players:Counting", "Steps", EnvOptions(), obs_space, Steps.action_space).player()
    actors = player.actors(2, seed=0)
    rows = {"turn": np.eye(3, dtype=np.float32)[[0, 1]], ACTION_MASK: np.array([[0, 0, 0], [1, 1, 1]], np.int8)}
    for number in range(2):
        actions = actors.act(rows, np.full(2, number == 0))
        assert actions.discrete.tolist() == [[0], [number]]
    rows[ACTION_MASK][0] = 1
    assert actors.act(rows, np.zeros(2, bool)).discrete.tolist() == [[0], [2]]
    assert actors.act(rows, np.zeros(2, bool), np.array([0, 1])).discrete.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_players:number", "has no function number"),
        ("no_such_module:fn", "no_such_module cannot be imported"),
        ("os:system", "os is a module of Python"),
        ("own_players.py:echo", "write own_players:echo"),
    ],
)
def test_what_is_no_player_is_refused(module, name, message):
    with pytest.raises(UsageError, match=f"player {re.escape(repr(name))}.*{re.escape(message)}"):
        opponent(name).player()


def test_a_wrong_move_and_what_a_player_raises_are_its_own_errors(module):
    with pytest.raises(UsageError, match=r"own_players:wrong.*99"):
        played_by([opponent("own_players:wrong").player()], [[0]])
    with pytest.raises(EnvError, match=r"own_players:broken.*KeyError: 'door'"):
        played_by([opponent("own_players:broken").player()], [[0]])


def test_names_of_opponents_are_no_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [is_name(name) for name in ("random", "own_players:echo", "train_dir/a", "hf:me/pong", "zoo/pong")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    Path("random").mkdir()
    assert not is_name("random")


def test_files_of_the_same_name_are_told_apart_by_their_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = checkpoint.encode(untrained("toy_match_rps"))
    paths = [Path(run) / "milestone_1.safetensors" for run in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(saved)
    found = find_contest(paths[0], (str(paths[1]), "random"), "latest", None).players
    assert list(found) == ["milestone_1", str(paths[1]), "random"]
    assert found["random"].action_space == gym.spaces.Discrete(3)  # that of the first policy


def test_teams_that_are_named_for_an_evaluation_do_not_change_what_a_policy_sees(tmp_path):
    path = tmp_path / "milestone_1.safetensors"
    path.write_bytes(checkpoint.encode(untrained("toy_match_counting")))
    teams = ('env_kwargs={"num_agents": 4}', 'teams=[["agent_[01]"], ["agent_[23]"]]')
    found = find_contest(path, (), "latest", None, teams)
    spec = envs.describe("toy_match_counting", found.options)
    assert spec.teams == (0, 0, 1, 1)
    require_spaces(found.players, "toy_match_counting", spec, found.options)


def test_the_win_rate_of_a_run_with_several_policies_is_against_those_who_were_named(tmp_path):
    run = tmp_path / "run"
    for i in range(2):
        checkpoint.save(run / "checkpoints" / f"policy_{i:02d}", untrained("toy_match_rps", seed=i), 10, keep=2)
    (run / "config.yaml").write_text("env: toy_match_rps\nnum_policies: 2\n")
    of_both, of_one = (find_contest(run, ("random",), "latest", policy_id) for policy_id in (None, 1))
    assert (of_both.num_own, len(of_both.players), of_one.num_own, len(of_one.players)) == (2, 3, 1, 2)
    evaluation = Evaluation("true_objective")
    for match_idx, (other, score) in enumerate([(1, -1.0), (1, -1.0), (2, 1.0)]):
        evaluation.episodes += [Played(match_idx, 0, 0, score, 1, 1, {}), Played(match_idx, 1, other, -score, 1, 1, {})]
    assert evaluate._result(evaluation, of_both.players, of_both.num_own, {})["win_rate"] == 1.0
    alone = find_contest(run, (), "latest", None)
    assert evaluate._result(evaluation, alone.players, alone.num_own, {})["win_rate"] == pytest.approx(1 / 3)


def test_a_win_is_a_higher_score_in_the_same_match():
    def episode(match_idx, agent_idx, policy_idx, score):
        return Played(match_idx, agent_idx, policy_idx, score, 1, 1, {})

    evaluation = Evaluation("true_objective")
    evaluation.episodes += [
        *(episode(0, 0, 0, 1.0), episode(0, 1, 1, -1.0)),
        *(episode(1, 0, 1, 0.0), episode(1, 1, 0, 0.0)),
        *(episode(2, 0, 0, -1.0), episode(2, 1, 1, 1.0)),
        *(episode(3, 0, 0, 1.0), episode(3, 1, 0, -1.0)),  # against itself
        *(episode(4, 0, 0, 5.0), episode(4, 1, 1, 2.0), episode(4, 2, 2, 9.0)),
    ]
    assert (evaluation.win_rate(0).mean, evaluation.win_rate(0).num) == ((1 + 0.5 + 0 + 1 + 0) / 5, 5)
    assert (evaluation.win_rate(0, 1).mean, evaluation.win_rate(1, 0).mean) == (2.5 / 4, 1.5 / 4)
    assert (evaluation.win_rate(0, 2).mean, evaluation.win_rate(2, 0).mean) == (0.0, 1.0)
    assert evaluation.win_rate(2).mean == 1.0
    assert evaluation.win_rate(0, 0) is None
    assert evaluation.win_rate(3) is None


def test_a_match_in_which_a_bot_lacks_the_objective_is_decided_by_returns():
    evaluation = Evaluation("damage")
    for agent_idx, (score, stats) in enumerate([(-5.0, {"damage": 185.0}), (1.0, {})]):
        evaluation.episodes.append(Played(0, agent_idx, agent_idx, score, 1, 1, stats))
    for agent_idx, damage in enumerate([3.0, 2.0]):
        evaluation.episodes.append(Played(1, agent_idx, agent_idx, 0.0, 1, 1, {"damage": damage}))
    assert evaluation.win_rate(0).mean == 0.5
    assert evaluation.scores_of_matches() == {0: {0: (0, -5.0), 1: (1, 1.0)}, 1: {0: (0, 3.0), 1: (1, 2.0)}}
    assert evaluation.share_won(0) == evaluation.win_rate(0)


def test_who_met_nobody_has_won_what_the_environment_says_and_may_lose_the_next_match():
    evaluation = Evaluation("true_objective")
    evaluation.episodes += [Played(n, 0, 0, -1.0, 1, 1, {"won": won}) for n, won in enumerate((1.0, 0.0, 0.5, 1.0))]
    evaluation.episodes += [Played(4, 0, 1, 9.0, 1, 1, {})]
    assert (evaluation.share_won(0).mean, evaluation.share_won(0).num) == (2.5 / 4, 4)
    assert evaluation.share_won(1) is None
    always = Evaluation("true_objective", [Played(n, 0, 0, 7.0, 1, 1, {"won": 1.0}) for n in range(20)])
    found = always.statistics(0)
    assert (found["won"].low, found["won"].high) == pytest.approx((0.8389, 1.0), abs=1e-4)
    assert (found["return"].low, found["return"].high) == (None, None)
    counted = Evaluation("true_objective", [Played(n, 0, 0, 7.0, 1, 1, {"won": 5.0 * n}) for n in range(3)])
    assert counted.statistics(0)["won"].mean == 5.0  # of an environment that counts something else by that name


def test_who_leaves_a_match_and_comes_back_has_one_result_in_it():
    kills = Evaluation("kills")
    kills.episodes += [Played(0, 0, 1, 9.0, 1, 1, {"kills": 2.0}), Played(0, 1, 0, 9.0, 1, 1, {"kills": 1.0})]
    kills.episodes += [Played(0, 0, 1, 9.0, 1, 1, {"kills": 3.0}), Played(2, 1, 1, 9.0, 1, 1, {})]
    assert kills.scores_of_matches() == {0: {0: (1, 5.0), 1: (0, 1.0)}, 2: {1: (1, 9.0)}}
    evaluation = Evaluation("true_objective")
    evaluation.episodes += [Played(0, 0, 0, 1.0, 1, 1, {})] * 3 + [Played(0, 1, 1, 2.0, 1, 1, {})]
    evaluation.episodes += [Played(1, 0, 1, -2.0, 1, 1, {})] * 2 + [Played(1, 1, 0, -3.0, 1, 1, {})]
    assert (evaluation.score_against(0, 1).mean, evaluation.score_against(0, 1).num) == ((3.0 - 3.0) / 2, 2)
    assert evaluation.score_against(1, 0).mean == (2.0 - 4.0) / 2
    assert (evaluation.win_rate(0, 1).mean, evaluation.win_rate(0, 1).num) == (1.0, 2)
    assert evaluation.win_rate(1).mean == 0.0


def test_a_function_sees_and_gives_what_its_own_kind_of_agent_does(module):
    envs.register_parallel_env("movers", Movers)
    with Path("own_players.py").open("a") as file:
        file.write(MOVER)
    group = envs.make_group("movers", 1, EnvOptions(), seed=0, first_env_idx=0)
    spec, env = group.spec, group._group._envs[0]
    player = Opponent("own_players:move", "movers", EnvOptions(), spec.native_obs_space, spec.action_space).player()
    play = Play(group, [player], np.zeros((1, 3), np.int64), range(1), 1, seed=0, deterministic=False)
    while not play.is_done:
        play.step()
    speaker, listener = (env.actions[0][name] for name in ("speaker", "listener_0"))
    assert speaker[0] == 1
    assert speaker[1].tolist() == [4.0]
    assert listener[0].tolist() == [2, 3]
    assert listener[1].tolist() == [0.0, 1.0, 4.0]
    calls = sys.modules["own_players"].calls
    assert {name: part.tolist() for name, part in calls[0].items()} == {"both": [111.0] * 2, "ears": [111.0] * 2}
    assert {name: part.tolist() for name, part in calls[1].items()} == {"both": [121.0] * 3, "eyes": [121.0] * 4}
