"""The tasks of the bench of what trainers learn that no package has."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from learning.tasks import ENVIRONMENTS


@pytest.fixture(autouse=True)
def found(monkeypatch):
    monkeypatch.syspath_prepend(str(ENVIRONMENTS))


def play(env, choose, num_episodes):
    returns = []
    for seed in range(num_episodes):
        obs, _ = env.reset(seed=seed)
        returns.append(0.0)
        over = False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(choose(obs))
            returns[-1] += reward
            over = terminated or truncated
    return returns


def test_the_ball_is_reached_by_who_sees_where_it_is():
    from reach_camera import Reach  # noqa: PLC0415

    def towards_the_ball(picture):
        white, red = ((picture == color).all(axis=-1).nonzero() for color in ((255, 255, 255), (255, 0, 0)))
        if not len(red[0]):
            return np.zeros(2)  # it is covered
        away = np.array([red[1].mean() - white[1].mean(), red[0].mean() - white[0].mean()])
        return np.clip(away / 5, -1, 1)

    env = Reach()
    check_env(env, skip_render_check=True)
    assert -12 < np.mean(play(env, towards_the_ball, 20)) < -3
    assert np.mean(play(env, lambda picture: np.zeros(2), 20)) < -30


def test_the_maze_asks_for_the_sign_at_its_start():
    from t_maze import TMaze  # noqa: PLC0415

    signs = []

    def with_memory(obs):
        if obs[0]:
            signs.append(obs[0])
        return 0 if not obs[1] else (2 if signs[-1] > 0 else 1)

    env = TMaze()
    check_env(env, skip_render_check=True)
    assert play(env, with_memory, 30) == [1.0] * 30
    without = play(env, lambda obs: 2 if obs[1] else 0, 200)
    assert set(without) == {1.0, -1.0}
    assert abs(np.mean(without)) < 0.3
