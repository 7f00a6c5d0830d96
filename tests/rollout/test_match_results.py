"""When a match begins, how it ended, and who has won it."""

import numpy as np
import pytest

from sf.envs import Episode, StepResult
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.toys.matches import CountingMatch
from sf.rollout.matches import Matches, PlayedMatch, WinRates

WON = "won"


def row(num_actors=4, terminated=(), truncated=(), first=(), ignored=(), joined=()):
    result = StepResult.empty(num_actors)
    result.joined[list(joined)] = True
    result.valid[list(ignored)] = False
    result.terminated[list(terminated)] = True
    result.truncated[list(truncated)] = True
    result.first[list(first)] = True
    return result


def matches_of(who, num_agents=2, objective=WON):
    return Matches(num_agents, objective, np.array(who), played=None)


def episode(actor_idx, episode_return, **stats):
    return Episode(actor_idx, episode_return, num_steps=1, num_frames=1, stats=stats)


def test_a_match_between_two_has_both_scores_and_one_with_oneself_is_none():
    matches = matches_of([0, 5, 0, 0])
    ended = [episode(0, 1.0), episode(1, -1.0), episode(2, 1.0), episode(3, -1.0)]
    finished = matches.ended(row(terminated=range(4), first=range(4)), ended)
    assert finished == [PlayedMatch((0, 5), (1.0, -1.0))]


def test_the_objective_decides_where_episodes_have_it():
    matches = matches_of([0, 1])
    ended = [episode(0, 10.0, won=0.0), episode(1, 9.0, won=1.0)]
    found = matches.ended(row(2, terminated=[0, 1], first=[0, 1]), ended)
    assert found == [PlayedMatch((0, 1), (0.0, 1.0))]


def test_a_match_in_which_somebody_lacks_the_objective_is_decided_by_returns():
    matches = matches_of([0, 1], objective="damage")
    ended = [episode(0, -5.0, damage=185.0), episode(1, 1.0)]  # of a bot
    found = matches.ended(row(2, terminated=[0, 1], first=[0, 1]), ended)
    assert found == [PlayedMatch((0, 1), (-5.0, 1.0))]


def test_a_match_lasts_until_the_last_agent_has_left_and_the_next_begins_with_a_first_row():
    matches = matches_of([0, 1])
    assert matches.ended(row(2, terminated=[0]), [episode(0, 3.0)]) == []
    assert matches.ended(row(2), []) == []
    assert matches.ended(row(2, truncated=[1]), [episode(1, 4.0)]) == [PlayedMatch((0, 1), (3.0, 4.0))]
    assert not matches.begins(np.zeros(2, bool)).any()  # the final observation has a row of its own
    assert matches.ended(row(2, first=[0, 1]), []) == []
    assert matches.begins(np.ones(2, bool)).all()
    assert not matches.begins(np.ones(2, bool)).any()  # once


def test_an_agent_that_comes_back_has_the_sum_of_its_episodes():
    matches = matches_of([0, 1])
    matches.ended(row(2, terminated=[0], first=[0]), [episode(0, 3.0)])
    assert not matches.begins(np.array([True, False])).any()  # the other one plays on
    found = matches.ended(row(2, terminated=[0, 1], first=[0, 1]), [episode(0, 5.0), episode(1, 1.0)])
    assert found == [PlayedMatch((0, 1), (8.0, 1.0))]


def test_an_agent_that_comes_back_as_the_last_other_one_leaves_plays_the_same_match():
    matches = matches_of([0, 1])
    matches.ended(row(2, terminated=[0]), [episode(0, 3.0)])
    came = row(2, terminated=[1], first=[0], ignored=[0], joined=[0])
    assert matches.ended(came, [episode(1, 1.0)]) == []
    assert not matches.begins(came.first).any()
    found = matches.ended(row(2, terminated=[0], first=[0, 1], ignored=[1]), [episode(0, 5.0)])
    assert found == [PlayedMatch((0, 1), (8.0, 1.0))]
    assert matches.begins(np.ones(2, bool)).all()


def test_a_fault_as_an_agent_comes_back_alone_cuts_the_match():
    matches = matches_of([0, 1])
    matches.ended(row(2, terminated=[0]), [episode(0, 3.0)])
    matches.ended(row(2, terminated=[1], first=[0], ignored=[0], joined=[0]), [episode(1, 1.0)])
    assert matches.ended(row(2, first=[0, 1], ignored=[0, 1]), []) == []
    ended = [episode(0, 5.0), episode(1, 2.0)]
    found = matches.ended(row(2, terminated=[0, 1], first=[0, 1]), ended)
    assert found == [PlayedMatch((0, 1), (5.0, 2.0))]


def test_a_match_that_a_fault_cuts_is_none_and_its_episodes_are_not_those_of_the_next():
    matches = matches_of([0, 1, 1], num_agents=3)
    assert matches.ended(row(3), []) == []
    assert matches.ended(row(3, terminated=[0]), [episode(0, -5.0)]) == []
    assert matches.ended(row(3, first=[0, 1, 2]), []) == []  # the environment was made anew
    assert not matches.begins(np.ones(3, bool)).any()  # the same play
    ended = [episode(0, 10.0), episode(1, 1.0), episode(2, 1.0)]
    finished = matches.ended(row(3, terminated=[0, 1, 2], first=[0, 1, 2]), ended)
    assert finished == [PlayedMatch((0, 1, 1), (10.0, 1.0, 1.0))]


def test_a_match_whose_agents_were_not_all_there_at_the_start_or_after_a_fault_ends_when_those_have_left():
    matches = matches_of([0, 1, 1], num_agents=3)
    ended = [episode(0, 1.0), episode(1, 2.0)]
    over = [PlayedMatch((0, 1), (1.0, 2.0))]
    for _ in range(2):
        assert matches.ended(row(3, ignored=[2]), []) == []
        assert matches.ended(row(3, terminated=[0, 1], first=[0, 1], ignored=[2]), ended) == over
        assert matches.begins(np.array([True, True, False])).all()
        assert matches.ended(row(3, first=[0, 1, 2], ignored=[0, 1, 2]), []) == []  # a fault


def test_in_a_real_group_every_match_is_found_once():
    num_envs, num_agents = 3, 3
    envs = [CountingMatch(num_agents, episodes_per_match=2, env_idx=e) for e in range(num_envs)]
    resets = [0] * num_envs
    for e, env in enumerate(envs):

        def counted(seed=None, options=None, e=e, reset=env.reset):
            resets[e] += 1
            return reset(seed, options)

        env.reset = counted
    group = ParallelGroup("counting", envs, 0, 0)
    n = num_envs * num_agents
    rows = {key: list(np.zeros((n, *box.shape), box.dtype)) for key, box in group.spec.obs_space.items()}
    matches, result = matches_of(num_envs * [*range(num_agents)], num_agents), StepResult.empty(n)
    group.reset(rows)
    num_finished = num_begun = num_episodes = 0
    for _ in range(500):
        ended = group.step(np.zeros((n, 1), np.int32), np.zeros((n, 0), np.float32), rows, result)
        num_episodes += len(ended)
        num_finished += len(matches.ended(result, ended))
        num_begun += int(matches.begins(result.first).sum())
    assert num_begun == sum(resets) - num_envs  # but for the first of each environment
    assert num_finished - num_begun in range(num_envs + 1)  # those that are over, and not yet reset
    assert num_episodes > 3 * num_finished > 100


# Who has won a match of different policies


POLICY = np.zeros(6, np.int32)  # who plays each actor


def judged(win_rates, returns, policy, first_actor=0):
    """The win rate of each agent whose episode ends, in its order; None where it has none."""
    POLICY[first_actor : first_actor + len(policy)] = policy
    episodes = [Episode(first_actor + n, paid, 1, 1, {"kills": 2.0}) for n, paid in enumerate(returns)]
    found = win_rates.add_to(episodes)
    assert [episode.actor_idx for episode in found] == [episode.actor_idx for episode in episodes]
    assert all(episode.stats["kills"] == 2.0 for episode in found)
    return [episode.stats.get("win_rate") for episode in found]


def test_the_higher_return_wins_and_the_same_one_is_a_draw():
    win_rates = WinRates(2, POLICY)
    assert judged(win_rates, [2.0, -2.0], [0, 1]) == [1.0, 0.0]
    assert judged(win_rates, [-0.5, 0.5, 0.0, 0.0], [1, 0, 0, 1], first_actor=2) == [0.0, 1.0, 0.5, 0.5]


def test_a_match_against_itself_says_nothing():
    win_rates = WinRates(2, POLICY)
    assert judged(win_rates, [2.0, -2.0], [1, 1]) == [None, None]


def test_a_policy_that_plays_several_agents_has_the_mean_of_their_returns():
    assert judged(WinRates(4, POLICY), [3.0, -1.0, 0.0, -2.0], [0, 1, 1, 0]) == [1.0, 0.0, 0.0, 1.0]


def test_among_several_policies_it_is_the_share_of_the_others_that_are_beaten():
    assert judged(WinRates(3, POLICY), [3.0, -1.0, -2.0], [4, 7, 5]) == [1.0, 0.5, 0.0]
    assert judged(WinRates(3, POLICY), [2.0, -1.0, -1.0], [4, 7, 5]) == [1.0, 0.25, 0.25]


@pytest.mark.parametrize("shared", [[1.0, 1.0], [2.0, -1.0]])
def test_an_environment_whose_returns_do_not_add_up_to_zero_has_no_winners(shared):
    win_rates = WinRates(2, POLICY)
    assert judged(win_rates, [0.0, 0.0], [0, 1]) == [None, None]  # no reward yet is no draw
    assert judged(win_rates, shared, [0, 1]) == [None, None]
    assert judged(win_rates, [1.0, -1.0], [0, 1]) == [None, None]


def test_agents_that_leave_before_the_others_say_nothing():
    win_rates = WinRates(2, POLICY)
    assert judged(win_rates, [1.0], [0, 1]) == [None]


# Teams


def test_a_team_has_one_score_the_sum_over_its_members_whenever_they_leave():
    matches = Matches(4, WON, np.array([5, 0, 5, 0]), played=None, sides=(0, 1, 0, 1))
    assert matches.ended(row(terminated=[0]), [episode(0, 3.0)]) == []
    ended = [episode(1, 1.0), episode(2, 4.0), episode(3, 2.0)]
    found = matches.ended(row(terminated=[1, 2, 3], first=range(4), ignored=[0]), ended)
    assert found == [PlayedMatch((5, 0), (7.0, 3.0))]


def test_of_more_than_two_teams_each_has_a_score():
    matches = Matches(4, WON, np.array([0, 1, 1, 0]), played=None, sides=(0, 1, 1, 2))
    ended = [episode(n, 2.0**n) for n in range(4)]
    assert matches.ended(row(terminated=range(4), first=range(4)), ended) == [PlayedMatch((0, 1, 0), (1.0, 6.0, 8.0))]


def test_the_sum_of_a_team_wins_and_not_the_best_of_its_members():
    win_rates = WinRates(4, POLICY, sides=(0, 0, 1, 1))
    assert judged(win_rates, [5.0, -7.0, 1.0, 1.0], [0, 0, 1, 1]) == [0.0, 0.0, 1.0, 1.0]
    of_uneven = WinRates(4, POLICY, sides=(0, 1, 1, 1))
    assert judged(of_uneven, [-1.0, 3.0, -1.0, -1.0], [0, 1, 1, 1]) == [0.0, 1.0, 1.0, 1.0]
