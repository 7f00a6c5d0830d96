"""Who plays whom: whole episodes, everybody equally often, together or not."""

import numpy as np
import pytest

from sf.envs import StepResult
from sf.rollout.assignment import Assignment, AssignmentRules
from sf.rollout.matches import Matches
from sf.rollout.recorders import Step
from sf.shared.seats import Seats

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


def begins(num_agents, ends, first):
    """[N] bool, where a match begins, after a first step in which agents end their episodes and others begin."""
    result = StepResult.empty(len(first))
    result.terminated[:] = ends
    result.first[:] = first
    step = Step(None, 0, result, [], result.first)
    Matches(num_agents, "objective", nobody(len(first)), played=None).after_step(step)
    return step.begins


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
        assignment.after_step(begins(3, ~nobody(), ~nobody()))
        met += [len(set(match)) for match in assignment.policy.reshape(-1, 3).tolist()]
    assert set(met) == ({1, 2, 3} if mixed else {1})


def test_an_agent_that_comes_back_into_a_match_of_one_policy_plays_the_same():
    assignment = new_assignment(num_policies=1000, mixed=False)
    before = assignment.policy.copy()
    play(assignment, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
    first = nobody()
    first[2] = True
    assignment.after_step(begins(2, first, first))
    assert (assignment.policy == before).all()


def test_a_match_is_of_another_policy_also_where_not_all_agents_are_there_when_it_begins():
    assignment = new_assignment(num_policies=1000, mixed=False)
    first = np.array([True, False] * 3)
    for _ in range(3):
        before = assignment.policy.copy()
        play(assignment, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        assignment.after_step(begins(2, ~nobody(), first))
        assert (assignment.policy != before).all()
        assert (assignment.policy[::2] == assignment.policy[1::2]).all()


def test_every_policy_plays_equally_often():
    assignment = new_assignment(num_policies=4)
    drawn = []
    for _ in range(1000):
        play(assignment, ROLLOUTS_PER_DRAW * ROLLOUT, nobody())
        assignment.after_step(~nobody())
        drawn += assignment.policy.tolist()
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    assert shares == pytest.approx([0.25] * 4, abs=0.03)


# Players that do not learn


NUM_AGENTS, NUM_ENVS = 4, 50


def with_seats(past_share, num_policies=2, num_open=4, per_draw=0, seed=0, targets=None, waits=False):
    targets = targets or {}
    seats = Seats.allocate(num_seats=4, num_groups=3, num_policies=num_policies - len(targets))
    for seat in range(num_open):
        seats.give(seat, 10 + seat, f"player {seat}")
        seats.set_open(seat, True)
    rules = AssignmentRules(num_policies, True, NUM_AGENTS, per_draw, seats, past_share, waits, targets)
    rng = np.random.default_rng(seed)
    return Assignment(rules, NUM_ENVS * NUM_AGENTS, ROLLOUT, rng, group_idx=1), seats


def begins_in(envs):
    """[N] bool, where a match begins in these environments."""
    return np.repeat(np.isin(np.arange(NUM_ENVS), envs), NUM_AGENTS)


EVERYWHERE = begins_in(range(NUM_ENVS))


def test_a_player_has_half_of_the_agents_of_a_match_and_one_policy_the_others():
    assignment, _ = with_seats(past_share=1.0)
    for policy, identity in zip(
        assignment.policy.reshape(NUM_ENVS, NUM_AGENTS), assignment.identity.reshape(NUM_ENVS, NUM_AGENTS), strict=True
    ):
        (learning,) = set(policy[policy < 2].tolist())
        (seated,) = set(policy[policy >= 2].tolist())
        assert (policy >= 2).sum() == NUM_AGENTS // 2
        assert (seated - 2) % 2 == learning  # in a seat of that policy
        assert (identity[policy >= 2] == 2 + 10 + seated - 2).all()
        assert (identity[policy < 2] == learning).all()
    assert set(assignment.policy.tolist()) == {0, 1, 2, 3, 4, 5}
    assert assignment.players == [0, 1, 2]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_the_share_of_matches_against_players_is_the_one_asked_for(share):
    assignment, _ = with_seats(share)
    num_past, num_draws = 0, 60
    for _ in range(num_draws):
        assignment.after_step(EVERYWHERE)
        num_past += int((assignment.policy.reshape(NUM_ENVS, NUM_AGENTS) >= 2).any(axis=1).sum())
    spread = 4 * np.sqrt(max(share * (1 - share), 1e-9) / (num_draws * NUM_ENVS))
    assert num_past / (num_draws * NUM_ENVS) == pytest.approx(share, abs=spread)


def test_who_plays_is_known_by_the_number_of_the_player_also_after_many_draws():
    assignment, _ = with_seats(past_share=0.5)
    for _ in range(20):
        assignment.after_step(EVERYWHERE)
        seated = assignment.policy >= 2
        assert seated.any()
        assert not seated.all()
        assert (assignment.identity == assignment.policy + 10 * seated).all()


def test_without_an_open_seat_policies_play_among_themselves():
    assignment, _ = with_seats(past_share=1.0, num_open=0)
    assert set(assignment.policy.tolist()) == {0, 1}
    assert assignment.players == [0, 1]


def test_a_run_that_waits_for_players_learns_nothing_until_a_seat_is_open_and_draws_then_with_the_next_match():
    assignment, seats = with_seats(past_share=1.0, num_open=0, per_draw=10**6, waits=True)
    assert set(assignment.policy.tolist()) == {0, 1}
    assert assignment.players == [0, 1]
    for _ in range(2):
        assert (assignment.learner == 2).all()  # no policy
        assignment.after_step(EVERYWHERE)
    for seat in range(4):
        seats.give(seat, 10 + seat, f"player {seat}")
        seats.set_open(seat, True)
    assignment.after_step(begins_in([3, 5]))
    meets = (assignment.policy >= 2).reshape(NUM_ENVS, NUM_AGENTS).any(axis=1)
    assert np.flatnonzero(meets).tolist() == [3, 5]
    learns = (assignment.learner == assignment.policy).reshape(NUM_ENVS, NUM_AGENTS)
    assert (learns.all(axis=1) == meets).all()
    before = assignment.policy.copy()
    assignment.after_step(begins_in([3, 5]))  # which are not old
    assert (assignment.policy == before).all()


def test_seats_know_who_plays_and_all_are_left_in_the_end():
    assignment, seats = with_seats(past_share=0.5)
    for env in range(NUM_ENVS):
        assignment.after_step(begins_in([env]))
        playing = assignment.policy.reshape(NUM_ENVS, NUM_AGENTS).max(axis=1) - 2
        counted = seats.tables["in_play"]
        assert counted[1].tolist() == [int((playing == seat).sum()) for seat in range(4)]
        assert not counted[[0, 2]].any()
    assignment.close()
    assert not seats.tables["in_play"].any()


def test_only_environments_where_a_match_begins_draw_and_not_before_their_time():
    assignment, _ = with_seats(past_share=0.5, per_draw=2)
    before = assignment.policy.copy()
    for _ in range(2 * ROLLOUT - 1):
        assignment.after_step(EVERYWHERE)
        assert (assignment.policy == before).all()
    assignment.after_step(begins_in([3, 5, 8]))
    changed = np.flatnonzero((assignment.policy != before).reshape(NUM_ENVS, NUM_AGENTS).any(axis=1))
    assert len(changed) > 0
    assert set(changed.tolist()) <= {3, 5, 8}


def test_exploiters_meet_their_targets_alone_and_the_pool_never():
    assignment, _ = with_seats(past_share=0.5, num_policies=5, targets={2: 0, 3: 1, 4: 0})
    num_matches, num_exploited = 0, {2: 0, 3: 0, 4: 0}
    for _ in range(60):
        assignment.after_step(EVERYWHERE)
        for policy in assignment.policy.reshape(NUM_ENVS, NUM_AGENTS):
            num_matches += 1
            exploiters = {policy_id for policy_id in policy.tolist() if policy_id in num_exploited}
            if exploiters:
                (exploiter,) = exploiters
                num_exploited[exploiter] += 1
                assert (policy == exploiter).sum() == NUM_AGENTS // 2
                assert set(policy.tolist()) == {exploiter, exploiter % 2}  # 2 after 0, 3 after 1, 4 after 0
    assert all(num / num_matches == pytest.approx(0.1, abs=0.03) for num in num_exploited.values())


# Roles

ROLES = ((0, 3), (1,), (2,), (2,))  # 3 is an exploiter; the last two agents have one role


def with_roles(past_share, num_open=12):
    seats = Seats.allocate(num_seats=12, num_groups=3, num_policies=3, num_opposed=2)  # two for each policy and role
    for seat in range(num_open):
        seats.give(seat, 10 + seat, f"player {seat}")
        seats.set_open(seat, True)
    rules = AssignmentRules(4, True, NUM_AGENTS, 0, seats, past_share, targets={3: 1}, roles=ROLES)
    return Assignment(rules, NUM_ENVS * NUM_AGENTS, ROLLOUT, np.random.default_rng(0), group_idx=1), seats


def test_a_policy_plays_its_role_and_a_player_of_its_own_each_other_one():
    assignment, seats = with_roles(past_share=1.0)
    drawn = set()
    for _ in range(20):
        assignment.after_step(EVERYWHERE)
        for match in assignment.policy.reshape(NUM_ENVS, NUM_AGENTS).tolist():
            assert match[2] == match[3]
            (learning,) = [own for own in match[:3] if own < 4]
            assert match.index(learning) == learning  # in its own role
            for opposed, agent in enumerate(agent for agent in range(3) if agent != learning):
                assert match[agent] - 4 in seats.of_policy(learning, opposed)
            drawn.update(match)
    assert drawn == {0, 1, 2, *range(4, 16)}
    assert seats.tables["in_play"].sum() == 2 * NUM_ENVS
    assignment.close()
    assert not seats.tables["in_play"].any()


def test_a_role_without_an_open_seat_leaves_the_match_to_the_policies():
    assignment, seats = with_roles(past_share=1.0, num_open=3)  # of the first role that each policy meets alone
    assert assignment.policy.max() < 4
    assert not seats.tables["in_play"].any()


def test_an_exploiter_plays_its_role_against_the_policies_of_the_others():
    assignment, _ = with_roles(past_share=0.0)
    num_exploited, num_draws = 0, 40
    for _ in range(num_draws):
        assignment.after_step(EVERYWHERE)
        matches = assignment.policy.reshape(NUM_ENVS, NUM_AGENTS)
        assert (matches[:, 1:] == [1, 2, 2]).all()
        assert set(matches[:, 0].tolist()) == {0, 3}
        num_exploited += int((matches[:, 0] == 3).sum())
    assert num_exploited / (num_draws * NUM_ENVS) == pytest.approx(0.25, abs=0.04)


# Teams


TEAMS = (0, 1, 0, 1)  # as in bridge


def sides_met(assignment):
    """[E, A] who plays each agent."""
    return assignment.policy.reshape(-1, NUM_AGENTS)


def of_teams(sides, past_share=1.0, num_policies=2, targets=None, mixed=True):
    """num_policies: exploiters included."""
    targets = targets or {}
    seats = Seats.allocate(num_seats=4, num_groups=3, num_policies=num_policies - len(targets))
    for seat in range(4):
        seats.give(seat, 10 + seat, f"player {seat}")
        seats.set_open(seat, True)
    rules = AssignmentRules(num_policies, mixed, NUM_AGENTS, 0, seats, past_share, False, targets, sides)
    return Assignment(rules, 100 * NUM_AGENTS, ROLLOUT, np.random.default_rng(0), group_idx=1)


def is_mixed(match):
    return match[0] != match[2] or match[1] != match[3]


@pytest.mark.parametrize(
    ("settings", "is_of_two"),
    [
        ({}, lambda match: max(match) >= 2),  # against a player
        ({"past_share": 0.0, "num_policies": 3, "targets": {1: 0, 2: 0}}, lambda match: max(match) >= 1),  # exploiters
        ({"past_share": 0.0, "num_policies": 9}, lambda match: len(set(match)) > 1),  # drawn by each side
    ],
)
def test_whole_teams_are_drawn_in_each_of_100_matches_and_agents_where_teams_are_mixed(settings, is_of_two):
    whole = [match for match in sides_met(of_teams(TEAMS, **settings)).tolist() if is_of_two(match)]
    assert len(whole) > 50
    assert not any(map(is_mixed, whole))
    assert {match[0] == max(match) for match in whole} == {True, False}  # either side
    for sides in ((), tuple(range(NUM_AGENTS))):
        drawn = [match for match in sides_met(of_teams(sides, **settings)).tolist() if is_of_two(match)]
        assert sum(map(is_mixed, drawn)) > len(drawn) / 2


def test_policies_that_draw_for_teams_keep_them_until_a_match_begins():
    rules = AssignmentRules(1000, True, NUM_AGENTS, 0, sides=TEAMS)
    assert rules.draws_by_match
    assert not AssignmentRules(1000, True, NUM_AGENTS, 0).draws_by_match
    assignment = Assignment(rules, NUM_ENVS * NUM_AGENTS, ROLLOUT, np.random.default_rng(0))
    for _ in range(3):
        before = sides_met(assignment).copy()
        assignment.after_step(EVERYWHERE)
        now = sides_met(assignment)
        assert (now != before).any(axis=1).mean() > 0.9
        assert (now[:, 0] == now[:, 2]).all()
        assert (now[:, 1] == now[:, 3]).all()


def test_of_three_teams_a_player_has_one():
    rules_of_three = (0, 0, 1, 2)
    assignment = of_teams(rules_of_three)
    taken = {tuple(np.flatnonzero(match >= 2).tolist()) for match in sides_met(assignment)}
    assert taken == {(0, 1), (2,), (3,)}
