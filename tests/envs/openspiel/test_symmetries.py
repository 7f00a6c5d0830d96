"""Symmetries of board games, which are found by playing them."""

import numpy as np
import pytest

from sf.envs import EnvOptions, make_group, symmetries
from sf.envs.group import StepResult
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.symmetries import UNKNOWN

pytest.importorskip("pyspiel")


def found(name):
    return symmetries(f"openspiel:{name}", EnvOptions())


NUM_SYMMETRIES = {
    "connect_four": 1,  # left and right
    "tic_tac_toe": 7,
    "othello": 3,  # its first four pieces lie crosswise
    "chess": 0,  # the king stands on one side
    "backgammon": 0,  # dice
    "2048": 0,  # a board, on which chance plays
    "leduc_poker": 0,  # no board
    "goofspiel": 0,  # all act at once
}


def test_a_game_has_as_many_as_its_board_and_its_rules_and_another_environment_none():
    assert {name: len(found(name)) for name in NUM_SYMMETRIES} == NUM_SYMMETRIES
    assert symmetries("CartPole-v1", EnvOptions()) == []


def test_connect_four_is_mirrored():
    (mirror,) = found("connect_four")
    assert mirror.action.tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert mirror.obs[ACTION_MASK].tolist() == [6, 5, 4, 3, 2, 1, 0]
    planes = np.arange(7 * 6 * 7).reshape(7, 6, 7)
    assert np.array_equal(planes.reshape(-1)[mirror.obs["observation"]].reshape(planes.shape), planes[:, :, ::-1])


def test_games_are_played_until_they_show_no_new_move(monkeypatch):
    """Those of breakthrough go by captures that are rare at random: twenty games lack a tenth of the moves."""
    monkeypatch.setattr("sf.envs.openspiel.symmetries._SECONDS", 30.0)
    (mirror,) = found("breakthrough")
    assert (mirror.action != UNKNOWN).sum() > 490


@pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])
def test_a_game_of_images_looks_like_the_image_of_the_game_to_the_end(name):
    """Through the rows that a trainer sees, with other moves than those by which it was found."""
    rng = np.random.default_rng(1)
    for symmetry in found(name):
        groups = [make_group(f"openspiel:{name}", 2, EnvOptions(), seed=0, first_env_idx=0) for _ in range(2)]
        rows = [
            {key: np.zeros((4, *box.shape), box.dtype) for key, box in groups[0].spec.obs_space.items()} for _ in groups
        ]
        results = [StepResult.empty(4) for _ in groups]
        for group, obs in zip(groups, rows, strict=True):
            group.reset(obs)
        for _ in range(100):
            for key, index in symmetry.obs.items():
                assert np.array_equal(rows[0][key].reshape(4, -1)[:, index], rows[1][key].reshape(4, -1))
            masks = rows[0][ACTION_MASK]
            discrete = [[rng.choice(np.flatnonzero(mask)) if mask.any() else 0] for mask in masks]
            discrete = np.array(discrete, np.int32)
            image = np.where(masks.any(axis=1, keepdims=True), symmetry.action[discrete], 0).astype(np.int32)
            for group, chosen, obs, result in zip(groups, (discrete, image), rows, results, strict=True):
                group.step(chosen, np.zeros((4, 0), np.float32), obs, result)
            assert np.array_equal(results[0].reward, results[1].reward)
            assert np.array_equal(results[0].terminated, results[1].terminated)
