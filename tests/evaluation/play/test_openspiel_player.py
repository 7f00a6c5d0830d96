"""A bot of OpenSpiel, which searches from the state that it follows through what it sees."""

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from sf import envs  # noqa: E402
from sf.envs import EnvOptions, StepResult, UsageError  # noqa: E402
from sf.envs.spaces.observations import obs_arrays  # noqa: E402
from sf.evaluation.play.episodes import Play  # noqa: E402
from sf.evaluation.play.games import openspiel_player  # noqa: E402
from sf.evaluation.play.opponents import Opponent, is_name  # noqa: E402


def opponent(name, env, kwargs="{}"):
    options = EnvOptions(env_kwargs=kwargs)
    spec = envs.describe(env, options)
    return Opponent(name, env, options, spec.native_obs_space, spec.action_space)


def play(env, names, num_matches=4, kwargs="{}", seed=1):
    """The returns [M, P] of matches in which the players change seats."""
    group = envs.make_group(env, 2, EnvOptions(env_kwargs=kwargs), seed=seed, first_env_idx=0)
    lineups = np.array([[0, 1], [1, 0]] * (num_matches // 2))
    players = [opponent(name, env, kwargs).player() for name in names]
    going = Play(group, players, lineups, range(2), 2, seed, deterministic=False)
    episodes = []
    while not going.is_done:
        episodes += going.step()
    returns = np.zeros((num_matches, 2))
    for episode in episodes:
        returns[episode.match_idx, episode.policy_idx] = episode.episode_return
    return returns


class Recorder:
    """In the place of the search: remembers from which states it is asked, and plays the first legal action."""

    def __init__(self, game, *_, **__):
        self.asked = []
        Recorder.latest = self

    def step(self, state):
        self.asked.append(str(state))
        return state.legal_actions()[0]


@pytest.mark.parametrize(
    ("game", "kwargs"),
    [
        ("connect_four", "{}"),
        ("othello", "{}"),  # who cannot move passes
        ("go", '{"board_size": 5}'),
        ("backgammon", "{}"),  # chance, and a player may move twice
        ("checkers", "{}"),
        ("nim", "{}"),
    ],
)
def test_the_bot_follows_the_game_from_what_it_sees(game, kwargs, monkeypatch):
    env = f"openspiel:{game}"
    monkeypatch.setattr(openspiel_player.pyspiel, "MCTSBot", Recorder)
    group = envs.make_group(env, 1, EnvOptions(env_kwargs=kwargs), seed=3, first_env_idx=0)
    actors = opponent("openspiel:mcts:1", env, kwargs).player().actors(2, seed=0)
    rng = np.random.default_rng(0)
    obs, result = obs_arrays(group.spec.obs_space, 2), StepResult.empty(2)
    group.reset(obs)
    first, truth = np.ones(2, bool), group._matches[0]
    num_decisions = 0
    for _ in range(60):
        before = list(Recorder.latest.asked)
        acted = actors.act({key: rows[1:] for key, rows in obs.items()}, first[1:], np.array([1])).discrete
        asked = Recorder.latest.asked[len(before) :]
        if obs["action_mask"][1].any():
            assert asked == [str(truth)]
            num_decisions += 1
        else:
            assert asked == []
        mask = obs["action_mask"][0]
        own = rng.choice(np.flatnonzero(mask)) if mask.any() else 0
        group.step(np.array([[own], acted[0]]), np.zeros((2, 0), np.float32), obs, result)
        first = result.first.copy()
    assert num_decisions > 10


def test_the_search_finds_what_random_moves_do_not_and_more_simulations_are_better():
    returns = play("openspiel:tic_tac_toe", ["openspiel:mcts:200", "random"], num_matches=20)
    assert returns[:, 0].sum() >= 15
    returns = play("openspiel:connect_four", ["openspiel:mcts:300", "openspiel:mcts:5"], num_matches=10)
    assert returns[:, 0].sum() >= 6


def test_who_comes_to_a_game_that_has_begun_moves_at_random_until_the_next():
    actors = opponent("openspiel:mcts:10", "openspiel:tic_tac_toe").player().actors(1, seed=0)
    group = envs.make_group("openspiel:tic_tac_toe", 1, EnvOptions(), seed=3, first_env_idx=0)
    obs = obs_arrays(group.spec.obs_space, 2)
    group.reset(obs)
    seen = {key: rows[:1] for key, rows in obs.items()}
    chosen = {int(actors.act(seen, np.zeros(1, bool)).discrete[0, 0]) for _ in range(200)}
    assert chosen == set(range(9))


@pytest.mark.parametrize(
    ("name", "env", "reason"),
    [
        ("openspiel:mcts", "openspiel:tic_tac_toe", "openspiel:mcts:N"),
        (f"openspiel:mcts:{'9' * 5000}", "openspiel:tic_tac_toe", "at most 1,000,000,000"),
        ("openspiel:mcts:5", "toy_match_rps", "toy_match_rps"),
        ("openspiel:mcts:5", "openspiel:leduc_poker", "hides something"),
        ("openspiel:mcts:5", "openspiel:python_tic_tac_toe", "Python"),
        ("openspiel:mcts:5", "openspiel:matrix_rps", "hides something|has its players act at once"),
    ],
)
def test_what_a_bot_cannot_play_is_said(name, env, reason):
    assert is_name(name)
    with pytest.raises(UsageError, match=f"player '{name}'.*({reason})"):
        opponent(name, env).player()


def test_a_bot_is_no_code_of_the_user(tmp_path, monkeypatch):
    from sf.config.trust import named_code  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    (tmp_path / "openspiel.py").write_text("")
    assert named_code({"env": "openspiel:tic_tac_toe", "players": ("openspiel:mcts:5",)}) == []
