"""Options that differ from one episode to the next: what environments are told, and when."""

import json

import gymnasium as gym
import numpy as np
import pytest
from group_driver import Memory, play, random_actions
from sized_env import LENGTH, Sized

from sf import envs
from sf.envs import EnvOptions, StepResult, UsageError
from sf.envs.added.episode_options import EpisodeOptionsGroup
from sf.envs.doom.matches import match, tasks
from sf.envs.errors import ApiError
from sf.envs.groups.gym import GymGroup
from sf.envs.guard import GuardedGroup


class Driven:
    """A group that has been reset, and the sizes [N] that its actors see."""

    def __init__(self, group):
        self.group, self._memory = group, Memory(group)
        group.reset(self._memory.rows)

    @property
    def sizes(self):
        return self._memory.taken()["obs"][:, 0]

    def step(self):
        group = self.group
        discrete, continuous = random_actions(group, np.random.default_rng(0))
        group.step(discrete, continuous, self._memory.rows, StepResult.empty(group.num_actors))
        return self.sizes


@pytest.mark.parametrize("kind", ["Sized", "SizedMatch", "SizedVector"])
def test_an_episode_has_the_options_it_began_with_and_the_next_one_those_that_were_set_meanwhile(kind):
    group = envs.make_group(f"sized_env:{kind}", 3, EnvOptions(env_options='{"size": 4}'), seed=0, first_env_idx=0)
    per_env, driven = group.num_actors // 3, Driven(group)
    assert (driven.sizes == 4).all()
    assert (driven.step() == 4).all()
    group.set_ranges(1, {"size": (7, 7)})
    seen = np.array([driven.step() for _ in range(3 * LENGTH)])
    others = [n for n in range(group.num_actors) if n // per_env != 1]
    assert (seen[:, others] == 4).all()
    own = seen[:, per_env]
    changes = np.flatnonzero(np.diff(own))
    assert set(own) == {4, 7}
    assert len(changes) == 1  # at the end of the episode that had begun
    assert [values["size"] for values in group.values] == [4, 7, 4]
    group.close()


def test_ranges_are_drawn_for_each_episode_as_the_declaration_has_them():
    options = EnvOptions(env_options={"size": [2, 4], "wind": [0.25, 0.5]})
    group = envs.make_group("sized_env:Sized", 40, options, seed=3, first_env_idx=0)
    envs_of_group = list(group._group._envs)
    play(group, 20 * LENGTH)
    env = envs_of_group[0]
    assert env.told[1::2].count(None) == len(env.told) / 2  # one before each reset
    drawn = [values for each in envs_of_group for values in each.told if values]
    assert {values["size"] for values in drawn} == {2, 3, 4}
    assert all(type(values["size"]) is int for values in drawn)
    winds = np.array([values["wind"] for values in drawn])
    assert 0.25 <= winds.min() < 0.27
    assert 0.48 < winds.max() <= 0.5
    counts = np.bincount([values["size"] for values in drawn])[2:]
    assert counts.min() > 0.25 * len(drawn)
    again = envs.make_group("sized_env:Sized", 40, options, seed=3, first_env_idx=0)
    first = again._group._envs[0]
    play(again, 20 * LENGTH)
    assert first.told == env.told


def test_environments_that_are_made_anew_after_a_fault_begin_with_the_options_that_were_set():
    made = []

    def make(attempt):
        made.append(Sized())
        return EpisodeOptionsGroup(GymGroup("sized", [made[-1]], 0, 0), {"size": (2, 2)}, (0,))

    group = GuardedGroup(make)
    driven = Driven(group)
    group.set_ranges(0, {"size": (6, 6)})
    made[0].step = None  # which cannot be called
    assert driven.step() == 6
    assert len(made) == 2
    assert made[1].told[:2] == [{"size": 6}, None]
    assert group.option_values[0] == {"size": 6}


@pytest.mark.parametrize(
    ("declared", "word"),
    [({"size": 3}, "schedulable"), ({"size": (5, 2)}, "schedulable"), ([("size", 1, 2)], "schedulable")],
)
def test_a_declaration_of_another_form_is_refused(declared, word):
    env = Sized()
    env.schedulable = declared
    with pytest.raises(ApiError, match=word):
        GymGroup("sized", [env], 0, 0)


def test_options_are_found_through_wrappers_and_need_a_method():
    assert GymGroup("sized", [gym.wrappers.TimeLimit(Sized(), 2)], 0, 0).spec.schedulable == Sized.schedulable
    env = gym.make("CartPole-v1")
    env.unwrapped.schedulable = {"size": (1, 2)}
    with pytest.raises(ApiError, match="set_options"):
        GymGroup("CartPole-v1", [env], 0, 0)


def test_an_environment_with_levels_is_told_one_for_each_episode_and_all_where_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(Sized, "levels", 5, raising=False)
    seen = {}
    for given in ({}, {"level": [1, 2]}, {"size": 4, "level": 3}):
        group = envs.make_group("sized_env:Sized", 20, EnvOptions(env_options=given), seed=0, first_env_idx=0)
        made = list(group._group._envs)
        play(group, 10 * LENGTH)
        seen[str(given)] = {values["level"] for env in made for values in env.told if values}
    assert [*seen.values()] == [{0, 1, 2, 3, 4}, {1, 2}, {3}]
    with pytest.raises(UsageError, match="level"):
        envs.describe("sized_env:Sized", EnvOptions(env_options={"level": 5}))
    monkeypatch.setattr(Sized, "levels", ["maze", "field"])
    with pytest.raises(ApiError, match="levels"):
        GymGroup("sized", [Sized()], 0, 0)
    env = gym.make("CartPole-v1")
    env.unwrapped.levels = ["maze", "field"]  # its own business: it cannot be told one
    assert not GymGroup("CartPole-v1", [env], 0, 0).spec.schedulable


@pytest.mark.parametrize(
    "given", ['{"size": 10}', '{"size": [0, 3]}', '{"depth": 1}', '{"size": [4, 2]}', '{"size": "3"}', "[3]", "{"]
)
def test_options_that_cannot_be_are_refused_before_anything_starts(given):
    with pytest.raises(UsageError, match="env_options"):
        envs.describe("sized_env:Sized", EnvOptions(env_options=given))


def test_matches_of_doom_have_their_length_and_the_difficulty_of_bots_as_options(monkeypatch):
    added = []
    monkeypatch.setattr(match, "bot_name", lambda *bot: added.append(bot) or tasks.bot_name(*bot))
    fixed = {
        "doom_match_s": 2.0,
        "doom_bot_difficulty": 10,
        "env_options": json.dumps({"doom_match_s": 4.0, "doom_bot_difficulty": 80}),
    }
    group = envs.make_group("doom_duel_bots", 1, EnvOptions(**fixed), seed=0, first_env_idx=0)
    assert set(group.spec.schedulable) == {"doom_match_s", "doom_bot_difficulty"}
    _, steps = play(group, 71)
    ends = [t for t, step in enumerate(steps) if step.result.truncated[0]]
    assert ends == [69]  # 4 seconds of 35 tics, two a step
    assert added == [(80, 0), (80, 0)]
