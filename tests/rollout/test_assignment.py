"""Who plays whom: whole episodes, everybody equally often, together or not."""

import numpy as np
import pytest

from sf.rollout.assignment import Assignment, AssignmentRules

ROLLOUT = 4
ROLLOUTS_PER_DRAW = 4


def new_assignment(num_policies=3, mixed=True, num_agents=2, num_actors=6, seed=0, per_draw=ROLLOUTS_PER_DRAW):
    rules = AssignmentRules(num_policies, mixed, num_agents, per_draw)
    return Assignment(rules, num_actors, ROLLOUT, np.random.default_rng(seed))


def nobody(num_actors=6):
    return np.zeros(num_actors, bool)


def play(assignment, num_steps, first):
    for _ in range(num_steps):
        assignment.after_step(first)


def test_a_policy_stays_until_an_episode_begins():
    assignment = new_assignment()
    before = assignment.policy.copy()
    play(assignment, 1000, nobody())
    assert (assignment.policy == before).all()


def test_only_those_whose_episode_begins_draw():
    drew = set()
    for seed in range(20):
        assignment = new_assignment(seed=seed)
        before = assignment.policy.copy()
        play(assignment, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        first = nobody()
        first[[1, 4]] = True
        assignment.after_step(first)
        drew |= set(np.flatnonzero(assignment.policy != before).tolist())
    assert drew == {1, 4}


def test_every_episode_draws_where_that_is_asked_for():
    assignment = new_assignment(num_policies=1000, per_draw=0)
    for _ in range(20):
        before = assignment.policy.copy()
        assignment.after_step(~nobody())
        assert (assignment.policy != before).mean() > 0.5


@pytest.mark.parametrize("length", [1, 3, 7, 100])
def test_episodes_that_are_short_share_a_policy_for_a_few_rollouts(length):
    assignment = new_assignment(num_policies=1000, num_actors=2)
    changes = []
    before = assignment.policy.copy()
    for step in range(1, 2001):
        assignment.after_step(np.full(2, step % length == 0))
        if (assignment.policy != before).all():
            changes.append(step)
            before = assignment.policy.copy()
    apart = np.diff(changes)
    assert (np.array(changes) % length == 0).all()
    assert apart.min() >= ROLLOUTS_PER_DRAW * ROLLOUT
    assert apart.max() <= max(length, ROLLOUTS_PER_DRAW * ROLLOUT + length)


@pytest.mark.parametrize("mixed", [True, False])
def test_agents_of_one_environment_draw_for_themselves_or_all_together(mixed):
    assignment = new_assignment(num_policies=4, mixed=mixed, num_agents=3)
    met = []
    for _ in range(200):
        play(assignment, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        assignment.after_step(~nobody())
        met += [len(set(match)) for match in assignment.policy.reshape(-1, 3).tolist()]
    assert set(met) == ({1, 2, 3} if mixed else {1})


def test_an_agent_that_comes_back_into_a_match_of_one_policy_plays_the_same():
    assignment = new_assignment(num_policies=1000, mixed=False)
    before = assignment.policy.copy()
    play(assignment, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
    first = nobody()
    first[2] = True
    assignment.after_step(first)
    assert (assignment.policy == before).all()


def test_every_policy_plays_equally_often():
    assignment = new_assignment(num_policies=4)
    drawn = []
    for _ in range(1000):
        play(assignment, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        assignment.after_step(~nobody())
        drawn += assignment.policy.tolist()
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    assert shares == pytest.approx([0.25] * 4, abs=0.03)
