"""Levels that rollout workers draw, and the rows that say which level they are of."""

import dataclasses

import numpy as np
import pytest
import scripted_group
from scripted_group import SPEC, Scripted, Stage

from sf.envs.added.episode_options import EpisodeOptionsGroup

LEVELS = 6
SPEC_OF_LEVELS = dataclasses.replace(SPEC, schedulable={"level": (0, LEVELS - 1)})


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Two matches of two agents, whose episodes take three steps."""
    monkeypatch.setattr(Scripted, "set_options", lambda self, *each: None, raising=False)

    def make(*made):
        return EpisodeOptionsGroup(Scripted(*made), {"level": (0, LEVELS - 1)}, (0,))

    monkeypatch.setattr(scripted_group, "Scripted", make)
    return Stage(tmp_path, monkeypatch, spec=SPEC_OF_LEVELS, level_choice="plr", rollout=4, num_policies=1)


def played(stage, num_rollouts):
    """The levels of the rows, [rows, environment]."""
    rows = []
    for _ in range(num_rollouts):
        for _ in range(4):
            stage.step()
        rows.append(stage.rows["level"][stage.slots].T)
        stage.memory.pool.reset()
    of_agents = np.concatenate(rows)
    assert (of_agents[:, ::2] == of_agents[:, 1::2]).all()
    return of_agents[:, ::2]


def test_rows_have_the_level_of_their_episode_and_learners_say_which_come(stage):
    told = []
    stage.group._envs._group._group.set_options = lambda env_idx, values: told.append((env_idx, values["level"]))
    probabilities = stage.memory.levels.arrays["probabilities"]
    probabilities[0] = 0.0
    probabilities[0, [1, 4]] = 0.5
    levels = played(stage, 6)
    episodes = levels.reshape(-1, 3, 2)
    assert (episodes == episodes[:, :1]).all()
    # What was drawn before the learner spoke is the episode that runs, and the next one.
    assert {*episodes[2:].flatten().tolist()} == {1, 4}
    for env_idx in (0, 1):
        of_env = [level for each, level in told if each == env_idx]
        assert episodes[2:, 0, env_idx].tolist() == of_env[: len(episodes) - 2]


def test_environments_of_a_group_play_different_levels_as_long_as_there_are_others(stage):
    levels = stage.memory.levels
    levels.arrays["probabilities"][0] = [1.0, 1e-6, 0, 0, 0, 0]
    rng = np.random.default_rng(0)
    assert {levels.draw(0, (), rng) for _ in range(20)} == {0}
    assert {levels.draw(0, {0}, rng) for _ in range(20)} == {1}
    assert {levels.draw(0, {0, 1}, rng) for _ in range(20)} == {0}
