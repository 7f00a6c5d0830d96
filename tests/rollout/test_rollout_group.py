"""A group of environments and the slots that it fills: what stands in the rows, and who is asked and told of what."""

import dataclasses
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from scripted_group import GROUP, SPEC, Scripted, Stage

from sf.envs.errors import UsageError
from sf.envs.spaces.actions import ACTION_MASK
from sf.rollout.group import RolloutGroup


@pytest.fixture
def stage(tmp_path, monkeypatch):
    return lambda **settings: Stage(tmp_path, monkeypatch, **settings)


def test_each_slot_says_whose_it_is_and_begins_with_what_the_one_before_ended_with(stage):
    found = stage()
    for begins_at in (0, 4, 8, 12):
        for _ in range(4):
            found.step()
        assert found.rows["actor"][found.slots].tolist() == [4, 5, 6, 7]  # of the second group
        assert found.rows["obs/obs"][found.slots[0], :, 0].tolist() == list(range(begins_at, begins_at + 5))
        assert found.rows["first"][found.slots[0]].tolist() == [t % 3 == 0 for t in range(begins_at, begins_at + 5)]
        learner = found.memory.pool.of_learner()
        learner.give_back(learner.take(at_most=4))
    assert found.group.is_parked


def test_env_steps_are_those_of_agents_that_had_something_to_choose(stage):
    found = stage()
    found.step()
    assert found.group.num_env_steps == 4
    mask = gym.spaces.Box(0, 1, (4,), np.int8)
    spec = dataclasses.replace(SPEC, obs_space=gym.spaces.Dict({**SPEC.obs_space.spaces, ACTION_MASK: mask}))

    class FirstAlone(Scripted):
        """The second agent of each match never chooses, nor does the first in every third row."""

        def _show(self, obs):
            super()._show(obs)
            for n in range(self.num_actors):
                obs[ACTION_MASK][n][...] = n % 2 == 0 and self._num_steps % 3 != 2

    found = stage(spec=spec)
    found.group._envs._group.__class__ = FirstAlone
    found.group._envs.reset({key: list(rows) for key, rows in found.group._next_obs.items()})
    counted = []
    for _ in range(4):
        found.step()
        counted.append(found.group.num_env_steps)
    assert counted == [2, 2, 0, 2]
    assert found.rows["env_steps"][found.slots].tolist() == [3, 0, 3, 0]


def test_a_row_whose_action_is_ignored_is_no_env_step(stage):
    class ResetsLate(Scripted):
        """Every third step begins an episode whatever the action, after the final observation of a truncated one."""

        def step(self, *args):
            episodes = super().step(*args)
            *_, result = args
            result.valid[:] = self._num_steps % 3 != 0
            return episodes

    found = stage(num_policies=9, pbt_rollouts_per_draw=0)  # a row that another policy has decided is an env step
    found.group._envs._group.__class__ = ResetsLate
    counted = []
    for _ in range(8):
        found.step()
        counted.append(found.group.num_env_steps)
        if found.group.is_parked:
            assert found.rows["env_steps"][found.slots].tolist() == 4 * [sum(counted[-4:]) // 4]
            found.memory.pool.reset()
    assert counted == [4, 4, 0, 4, 4, 0, 4, 4]


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_truncated_row_counts_as_the_flag_says(stage, bootstrap):
    class Truncates(Scripted):
        def step(self, *args):
            episodes = super().step(*args)
            *_, result = args
            result.truncated[:], result.terminated[:] = result.terminated, False
            return episodes

    found = stage(bootstrap_truncated=bootstrap)
    found.env.__class__ = Truncates
    for _ in range(4):
        found.step()
    assert found.rows["terminated"][found.slots].tolist() == 4 * [[False, False, not bootstrap, False]]


def test_a_bots_number_is_played_and_no_action_of_a_trajectory(stage):
    found = stage(spec=dataclasses.replace(SPEC, bots={"easy": -1}))
    found.step(action=-1)
    assert found.env.actions == [[-1] * 4]
    assert (found.rows["discrete"][found.slots, 0] == 0).all()


def test_episodes_are_those_of_the_policies_that_played_them_and_not_of_the_next(stage):
    found = stage(num_policies=9, pbt_rollouts_per_draw=0)
    changes = 0
    for _ in range(6):
        before = found.group._assignment.policy.copy()
        episodes = found.step()
        assert found.group.ended_with.tolist() == before.tolist()
        changes += bool(episodes) and (found.group._assignment.policy != before).any()
        found.memory.pool.reset()
    assert changes > 0


def test_episodes_of_a_match_of_different_policies_say_which_has_won(stage):
    class ZeroSum(Scripted):
        """The second agent of each match wins."""

        def step(self, *args):
            episodes = super().step(*args)
            return [dataclasses.replace(e, episode_return=1.0 if e.actor_idx % 2 else -1.0) for e in episodes]

    found = stage(num_policies=2, pbt_rollouts_per_draw=0)
    found.group._envs._group.__class__ = ZeroSum
    won = set()
    for _ in range(30):
        policy = found.group._assignment.policy.copy()
        for episode in found.step():
            first, second = policy[episode.actor_idx // 2 * 2 :][:2]
            won.add((bool(first != second), episode.actor_idx % 2, episode.stats.get("win_rate")))
        found.memory.pool.reset()
    assert won == {(True, 0, 0.0), (True, 1, 1.0), (False, 0, None), (False, 1, None)}


def test_a_game_whose_lives_are_episodes_is_played_by_one_policy(stage):
    class OfTwoLives(Scripted):
        def step(self, *args):
            episodes = super().step(*args)
            return episodes if self._num_steps % 6 == 0 else []

    found = stage(spec=dataclasses.replace(SPEC, num_agents=1), num_policies=9, pbt_rollouts_per_draw=0)
    found.group._envs._group.__class__ = OfTwoLives
    who = []
    for _ in range(12):
        found.step()
        who.append(found.group._assignment.policy.tolist())
        found.memory.pool.reset()
    assert [row != before for before, row in pairwise(who)] == [step % 6 == 5 for step in range(1, 12)]


@pytest.mark.parametrize("space", [gym.spaces.Discrete(5), gym.spaces.Discrete(4, start=1)])
def test_actions_that_differ_from_those_of_the_plan_are_refused(stage, space):
    args = dataclasses.replace(stage().args, action_space=space)
    with pytest.raises(UsageError, match=r"Discrete\(4\) in a rollout worker"):
        RolloutGroup(GROUP, args)


def test_rows_from_where_another_policy_plays_are_of_no_use_to_the_one_that_the_slot_is_for(stage):
    found = stage(num_policies=9, pbt_rollouts_per_draw=0)
    whose = []
    for _ in range(4):
        whose.append(found.group._assignment.policy.copy())
        found.step()
    valid = found.rows["valid"][found.slots].T
    assert valid.tolist() == [(row == whose[0]).tolist() for row in whose]
    assert valid[:3].all()
    assert not valid[3].all()


def test_rewards_are_shaped_by_the_weights_of_whoever_plays_from_the_start_and_where_an_episode_begins(stage):
    found = stage(spec=dataclasses.replace(SPEC, shaping={"kills": 1.0}), num_policies=2, pbt_rollouts_per_draw=0)
    weights = found.memory.shaping["weights"]
    expected = [(n, [1.0]) for n in range(4)]
    assert found.env.shaped == expected
    weights[:, 0] = 5.0, 7.0
    for _ in range(3):
        assert found.env.shaped == expected
        found.step()
    assert found.env.shaped[4:] == [(n, [5.0 + 2.0 * who]) for n, who in enumerate(found.group._assignment.policy)]


def test_a_match_is_noted_once_with_its_player_and_no_seat_is_kept_at_the_end(stage):
    found = stage(past_share=1.0, pbt_rollouts_per_draw=0, seats=2)
    found.step()
    found.step()
    found.memory.seats.tables["is_open"][:] = False
    found.step()
    played = found.group.pop_played()
    assert [set(match.who) for match in played] == [{0, 1}] * 2  # matches of both environments
    assert found.group.pop_played() == []
    assert not found.memory.seats.tables["in_play"].any()
    found.memory.seats.tables["is_open"][:] = True
    assert found.group._counters.get("player_steps") == 0
    found.step()
    assert found.group._counters.get("player_steps") == 2 * 4  # of each of the two matches one agent, four rows
    found.memory.pool.reset()
    found.step()
    found.step()
    assert found.memory.seats.tables["in_play"].sum() == 2
    found.group.close()
    assert found.env.is_closed
    assert not found.memory.seats.tables["in_play"].any()


def test_rows_of_a_match_that_waits_for_a_player_are_of_no_use_to_the_policy_that_began_the_slot(stage):
    found = stage(past_share=1.0, players=("random",), pbt_rollouts_per_draw=0)
    learns = found.group._assignment.policy == 0
    assert learns.sum() == 2
    found.memory.seats.tables["is_open"][:] = False
    for _ in range(4):
        found.step()
    assert (found.group._assignment.policy == 0).all()
    assert found.rows["valid"][found.slots].T[:, learns].tolist() == [[True, True]] * 3 + [[False, False]]


@pytest.mark.parametrize(
    ("flags", "is_cut"),
    [({}, True), ({"decorrelate_episodes": False}, False), ({"num_policies": 2}, False), ({"past_share": 0.5}, False)],
)
def test_an_early_episode_is_cut_where_one_policy_plays_alone(stage, flags, is_cut):
    found = stage(spec=dataclasses.replace(SPEC, can_cut=True, time_limit=1), **flags)
    found.step()
    assert found.env.cuts == ([0, 1] if is_cut else [])


def test_what_is_drawn_differs_from_group_to_group_from_start_to_start_and_not_in_between(stage):
    def drawn(**settings):
        found = stage(num_policies=6, num_envs_per_worker=40, **settings)
        return tuple(found.group._assignment.policy.tolist()), found.env.made["seed"]

    first, again = drawn(), drawn()
    assert first == again
    other_group, other_start = drawn(group_idx=0), drawn(num_before=1)
    assert len({first[0], other_group[0], other_start[0]}) == 3
    assert first[1] == other_group[1] != other_start[1]  # environments draw by their number beside it


def test_environments_are_numbered_over_the_whole_run_and_made_anew_with_another_seed(stage):
    found = stage()
    assert found.env.made["first_env_idx"] == 2
    before, found.env.step = found.env, None  # a fault
    found.step()
    assert before.is_closed
    assert found.env.made["first_env_idx"] == 2
    assert found.env.made["seed"] != before.made["seed"]
    assert found.group.pop_num_cut() == 4
    assert found.group.pop_num_cut() == 0
    assert not found.rows["valid"][found.slots, 0].any()
    assert found.rows["first"][found.slots, 1].all()
