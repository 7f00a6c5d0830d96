"""Whose turn it is in the rows of slots, and the env steps that are counted in them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from sf.envs import EnvSpec
from sf.envs.spaces.actions import ACTION_MASK
from sf.shared.queues import PipeQueue
from sf.shared.rows import OBS, TurnMask
from sf.shared.slots import FREE, FULL, SlotPool

ROLLOUT = 3
DISCRETE, CONTINUOUS = gym.spaces.Discrete(2), gym.spaces.Box(-1, 1, (1,))


def make_pool(action_space=DISCRETE, with_masks=True, num_policies=1, has_seats=False):
    boxes = {"obs": gym.spaces.Box(0, 1, (2,), np.float32)}
    if with_masks:
        boxes[ACTION_MASK] = gym.spaces.Box(0, 1, (2,), np.int8)
    pool = SlotPool.allocate(
        EnvSpec(obs_space=gym.spaces.Dict(boxes), action_space=action_space),
        ROLLOUT,
        inboxes=(PipeQueue(1 << 8),),
        groups_per_worker=1,
        slots_per_group=4,
        actors_per_group=4,
        num_policies=num_policies,
        has_seats=has_seats,
    )
    if with_masks:
        masks = pool.arrays[OBS + ACTION_MASK]  # [4, T+1, 2]
        masks[:] = 1
        masks[0, :2] = 0
        masks[1, :] = 0
        masks[2, ROLLOUT] = 0  # row 0 of the next slot
        masks[3, 1, 0] = 0  # one choice is left
        pool.arrays["env_steps"][:] = [1, 0, ROLLOUT, ROLLOUT]
    return pool


@pytest.mark.parametrize(
    "layout",
    [
        {"with_masks": False},
        {"action_space": gym.spaces.Tuple((DISCRETE, CONTINUOUS))},  # there is always something to choose
    ],
)
def test_without_masks_of_discrete_actions_alone_there_are_no_turns(layout):
    assert TurnMask.from_rows(make_pool(**layout).arrays) is None


def test_each_agent_is_asked_for_in_its_own_row():
    turns = TurnMask.from_rows(make_pool().arrays)
    assert turns.acts(np.array([0, 0, 1, 2, 3]), np.array([1, 2, 0, ROLLOUT, 1])).tolist() == [
        False,
        True,
        False,
        False,
        True,
    ]
    assert turns.acts([0, 1, 2, 3], 0).tolist() == [False, False, True, True]


def test_only_0_forbids():
    pool = make_pool()
    pool.arrays[OBS + ACTION_MASK][:] = [0, -1]
    assert TurnMask.from_rows(pool.arrays).acts([0, 1], 0).all()


def test_what_a_learner_takes_is_counted_in_env_steps_also_where_it_dies_before_it_says_so():
    pool = make_pool(num_policies=2)
    worker, learner = pool.of_worker(), pool.of_learner(1)
    slots = worker.take(0, 4)
    pool.arrays["policy"][slots] = [1, 1, 0, 1]
    worker.hand_over(slots)
    assert learner.take(at_most=1) == [0]
    assert [pool.env_steps_taken(policy_id) for policy_id in range(2)] == [0, 1]
    assert learner.take(at_most=2) == [1, 3]
    pool.taken["count"][1] = 1  # as if it had died in between
    pool.recover_learner(1)
    assert [pool.env_steps_taken(policy_id) for policy_id in range(2)] == [0, 4]
    pool.reset()
    assert [pool.env_steps_taken(policy_id) for policy_id in range(2)] == [3, 4]


def test_a_rollout_worker_learns_how_many_env_steps_players_have_played_whose_slots_no_learner_takes():
    pool = make_pool(has_seats=True)
    worker = pool.of_worker()
    slots = worker.take(0, 4)
    pool.arrays["policy"][slots] = [1, 0, 2, 0]  # one policy learns
    assert worker.hand_over(slots) == 1 + 3
    assert (pool.arrays["state"] == [FREE, FULL, FREE, FULL]).all()
    assert pool.of_learner().take(at_most=4) == [1, 3]
