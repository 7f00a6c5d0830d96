"""Who plays whom: whole episodes, everybody equally often, together or not."""

import numpy as np
import pytest

from sf.rollout.assignment import Cast, CastRules

ROLLOUT = 4
ROLLOUTS_PER_DRAW = 4


def new_cast(num_policies=3, mixed=True, num_agents=2, num_actors=6, seed=0, per_draw=ROLLOUTS_PER_DRAW):
    rules = CastRules(num_policies, mixed, num_agents, per_draw)
    return Cast(rules, num_actors, ROLLOUT, np.random.default_rng(seed))


def nobody(num_actors=6):
    return np.zeros(num_actors, bool)


def play(cast, num_steps, first):
    for _ in range(num_steps):
        cast.after_step(first)


def test_a_policy_stays_until_an_episode_begins():
    cast = new_cast()
    before = cast.policy.copy()
    play(cast, 1000, nobody())
    assert (cast.policy == before).all()


def test_only_those_whose_episode_begins_draw():
    drew = set()
    for seed in range(20):
        cast = new_cast(seed=seed)
        before = cast.policy.copy()
        play(cast, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        first = nobody()
        first[[1, 4]] = True
        cast.after_step(first)
        drew |= set(np.flatnonzero(cast.policy != before).tolist())
    assert drew == {1, 4}


def test_every_episode_draws_where_that_is_asked_for():
    cast = new_cast(num_policies=1000, per_draw=0)
    for _ in range(20):
        before = cast.policy.copy()
        cast.after_step(~nobody())
        assert (cast.policy != before).mean() > 0.5


@pytest.mark.parametrize("length", [1, 3, 7, 100])
def test_episodes_that_are_short_share_a_policy_for_a_few_rollouts(length):
    cast = new_cast(num_policies=1000, num_actors=2)
    changes = []
    before = cast.policy.copy()
    for step in range(1, 2001):
        cast.after_step(np.full(2, step % length == 0))
        if (cast.policy != before).all():
            changes.append(step)
            before = cast.policy.copy()
    apart = np.diff(changes)
    assert (np.array(changes) % length == 0).all()
    assert apart.min() >= ROLLOUTS_PER_DRAW * ROLLOUT
    assert apart.max() <= max(length, ROLLOUTS_PER_DRAW * ROLLOUT + length)


@pytest.mark.parametrize("mixed", [True, False])
def test_agents_of_one_environment_draw_for_themselves_or_all_together(mixed):
    cast = new_cast(num_policies=4, mixed=mixed, num_agents=3)
    met = []
    for _ in range(200):
        play(cast, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        cast.after_step(~nobody())
        met += [len(set(match)) for match in cast.policy.reshape(-1, 3).tolist()]
    assert set(met) == ({1, 2, 3} if mixed else {1})


def test_an_agent_that_comes_back_into_a_match_of_one_policy_plays_the_same():
    cast = new_cast(num_policies=1000, mixed=False)
    before = cast.policy.copy()
    play(cast, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
    first = nobody()
    first[2] = True
    cast.after_step(first)
    assert (cast.policy == before).all()


def test_every_policy_plays_equally_often():
    cast = new_cast(num_policies=4)
    drawn = []
    for _ in range(1000):
        play(cast, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        cast.after_step(~nobody())
        drawn += cast.policy.tolist()
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    assert shares == pytest.approx([0.25] * 4, abs=0.03)
