"""Agents of teams are trained on what the matrix of each flag makes of their rewards."""

import dataclasses

import numpy as np
import pytest
from scripted_group import SPEC, Scripted, Stage

from sf.envs import EnvOptions, StepResult
from sf.rollout.recorders import Step
from sf.rollout.rewards import TeamRewards, matrix_of, reward_matrix

PAID = np.array([1.0, 3.0, 10.0, 20.0, 60.0])
TEAMS = (0, 0, 1, 1, 1)  # means of 2 and 30


@pytest.mark.parametrize(
    ("flags", "trained_on"),
    [
        ({}, [1, 3, 10, 20, 60]),
        ({"share_reward": "all"}, [94] * 5),
        ({"share_reward": "team"}, [4, 4, 90, 90, 90]),
        ({"team_spirit": 0.3}, [0.7 + 0.6, 2.1 + 0.6, 7 + 9, 14 + 9, 42 + 9]),
        ({"team_spirit": 1.0}, [2, 2, 30, 30, 30]),
        ({"zero_sum": True}, [-29, -27, 8, 18, 58]),
        ({"team_spirit": 0.5, "zero_sum": True}, [1.5 - 30, 2.5 - 30, 20 - 2, 25 - 2, 45 - 2]),
        ({"share_reward": "team", "zero_sum": True}, [4 - 90, 4 - 90, 86, 86, 86]),
    ],
)
def test_each_flag_makes_the_rewards_that_it_describes(flags, trained_on):
    matrix = reward_matrix(5, TEAMS, **flags)
    assert matrix.shape == (5, 5)
    assert matrix @ PAID == pytest.approx(trained_on)


def test_among_three_teams_the_mean_of_the_others_is_taken_off():
    matrix = reward_matrix(4, (2, 0, 1, 2), zero_sum=True)
    assert matrix @ np.array([1.0, 4.0, 10.0, 3.0]) == pytest.approx([1 - 7, 4 - 6, 10 - 3, 3 - 7])


def test_there_is_no_matrix_where_nothing_is_asked_for():
    assert matrix_of(EnvOptions(), 2, ()) is None
    assert matrix_of(EnvOptions(share_reward=True), 1, ()) is None
    assert matrix_of(EnvOptions(share_reward=True), 2, ()).tolist() == [[1, 1], [1, 1]]


def test_an_agent_that_does_not_act_gets_nothing_and_others_get_what_it_was_paid():
    reward = np.full((5, 3), 9.0, np.float32)  # [num_slots, T]
    result = StepResult.empty(4)
    result.reward[:] = [1, 2, 3, 4]
    result.valid[3] = False
    slots = np.array([4, 0, 2, 3])
    TeamRewards(reward_matrix(2, (0, 0), "team"), reward).after_step(Step(slots, 1, result, [], result.first))
    assert reward[slots, 1].tolist() == [3, 3, 7, 0]
    assert (reward[1] == 9).all()
    assert (reward[:, [0, 2]] == 9).all()


def test_the_group_writes_them_and_reports_what_the_environment_paid(tmp_path, monkeypatch):
    class PaysTheSecond(Scripted):
        def step(self, *args):
            episodes = super().step(*args)
            *_, result = args
            result.reward[:] = [0.0, 8.0] * 2
            return episodes

    spec = dataclasses.replace(SPEC, teams=(0, 0))
    found = Stage(tmp_path, monkeypatch, spec=spec, team_spirit=0.25)
    found.env.__class__ = PaysTheSecond
    episodes = [episode for _ in range(4) for episode in found.step()]
    assert found.rows["reward"][found.slots].tolist() == [[1.0] * 4, [7.0] * 4] * 2
    assert [episode.episode_return for episode in episodes] == [0.0, 1.0, 2.0, 3.0]  # as scripted
