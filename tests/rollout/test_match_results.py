"""When a match begins, and how it ended."""

import numpy as np

from sf.envs import Episode, StepResult
from sf.envs.groups.parallel import ParallelGroup
from sf.envs.toys.matches import CountingMatch
from sf.rollout.matches import Matches
from sf.storage.match_journal import PlayedMatch

WON = "won"


def row(num_actors=4, terminated=(), truncated=(), first=(), ignored=(), joined=()):
    result = StepResult.empty(num_actors)
    result.joined[list(joined)] = True
    result.valid[list(ignored)] = False
    result.terminated[list(terminated)] = True
    result.truncated[list(truncated)] = True
    result.first[list(first)] = True
    return result


def episode(actor_idx, episode_return, **stats):
    return Episode(actor_idx, episode_return, num_steps=1, num_frames=1, stats=stats)


def test_a_match_between_two_has_both_scores_and_one_with_oneself_is_none():
    matches = Matches(num_actors=4, num_agents=2, objective=WON)
    who = np.array([0, 5, 0, 0])
    ended = [episode(0, 1.0), episode(1, -1.0), episode(2, 1.0), episode(3, -1.0)]
    finished = matches.after_step(row(terminated=range(4), first=range(4)), ended, who)
    assert finished == [PlayedMatch((0, 5), (1.0, -1.0))]


def test_the_objective_decides_where_episodes_have_it():
    matches = Matches(num_actors=2, num_agents=2, objective=WON)
    ended = [episode(0, 10.0, won=0.0), episode(1, 9.0, won=1.0)]
    found = matches.after_step(row(2, terminated=[0, 1], first=[0, 1]), ended, np.array([0, 1]))
    assert found == [PlayedMatch((0, 1), (0.0, 1.0))]


def test_a_match_in_which_somebody_lacks_the_objective_is_decided_by_returns():
    matches = Matches(num_actors=2, num_agents=2, objective="damage")
    ended = [episode(0, -5.0, damage=185.0), episode(1, 1.0)]  # of a bot
    found = matches.after_step(row(2, terminated=[0, 1], first=[0, 1]), ended, np.array([0, 1]))
    assert found == [PlayedMatch((0, 1), (-5.0, 1.0))]


def test_a_match_lasts_until_the_last_agent_has_left_and_the_next_begins_with_a_first_row():
    matches = Matches(num_actors=2, num_agents=2, objective=WON)
    who = np.array([0, 1])
    assert matches.after_step(row(2, terminated=[0]), [episode(0, 3.0)], who) == []
    assert matches.after_step(row(2), [], who) == []
    assert matches.after_step(row(2, truncated=[1]), [episode(1, 4.0)], who) == [PlayedMatch((0, 1), (3.0, 4.0))]
    assert not matches.begins(np.zeros(2, bool)).any()  # the final observation has a row of its own
    assert matches.after_step(row(2, first=[0, 1]), [], who) == []
    assert matches.begins(np.ones(2, bool)).all()
    assert not matches.begins(np.ones(2, bool)).any()  # once


def test_an_agent_that_comes_back_has_the_sum_of_its_episodes():
    matches = Matches(num_actors=2, num_agents=2, objective=WON)
    who = np.array([0, 1])
    matches.after_step(row(2, terminated=[0], first=[0]), [episode(0, 3.0)], who)
    assert not matches.begins(np.array([True, False])).any()  # the other one plays on
    found = matches.after_step(row(2, terminated=[0, 1], first=[0, 1]), [episode(0, 5.0), episode(1, 1.0)], who)
    assert found == [PlayedMatch((0, 1), (8.0, 1.0))]


def test_an_agent_that_comes_back_as_the_last_other_one_leaves_plays_the_same_match():
    matches = Matches(num_actors=2, num_agents=2, objective=WON)
    who = np.array([0, 1])
    matches.after_step(row(2, terminated=[0]), [episode(0, 3.0)], who)
    came = row(2, terminated=[1], first=[0], ignored=[0], joined=[0])
    assert matches.after_step(came, [episode(1, 1.0)], who) == []
    assert not matches.begins(came.first).any()
    found = matches.after_step(row(2, terminated=[0], first=[0, 1], ignored=[1]), [episode(0, 5.0)], who)
    assert found == [PlayedMatch((0, 1), (8.0, 1.0))]
    assert matches.begins(np.ones(2, bool)).all()


def test_a_fault_as_an_agent_comes_back_alone_cuts_the_match():
    matches = Matches(num_actors=2, num_agents=2, objective=WON)
    who = np.array([0, 1])
    matches.after_step(row(2, terminated=[0]), [episode(0, 3.0)], who)
    matches.after_step(row(2, terminated=[1], first=[0], ignored=[0], joined=[0]), [episode(1, 1.0)], who)
    assert matches.after_step(row(2, first=[0, 1], ignored=[0, 1]), [], who) == []
    ended = [episode(0, 5.0), episode(1, 2.0)]
    found = matches.after_step(row(2, terminated=[0, 1], first=[0, 1]), ended, who)
    assert found == [PlayedMatch((0, 1), (5.0, 2.0))]


def test_a_match_that_a_fault_cuts_is_none_and_its_episodes_are_not_those_of_the_next():
    matches = Matches(num_actors=3, num_agents=3, objective=WON)
    who = np.array([0, 1, 1])
    assert matches.after_step(row(3), [], who) == []
    assert matches.after_step(row(3, terminated=[0]), [episode(0, -5.0)], who) == []
    assert matches.after_step(row(3, first=[0, 1, 2]), [], who) == []  # the environment was made anew
    assert not matches.begins(np.ones(3, bool)).any()  # the same play
    ended = [episode(0, 10.0), episode(1, 1.0), episode(2, 1.0)]
    finished = matches.after_step(row(3, terminated=[0, 1, 2], first=[0, 1, 2]), ended, who)
    assert finished == [PlayedMatch((0, 1, 1), (10.0, 1.0, 1.0))]


def test_a_match_whose_agents_were_not_all_there_at_the_start_or_after_a_fault_ends_when_those_have_left():
    matches = Matches(num_actors=3, num_agents=3, objective=WON)
    who = np.array([0, 1, 1])
    ended = [episode(0, 1.0), episode(1, 2.0)]
    over = [PlayedMatch((0, 1), (1.0, 2.0))]
    for _ in range(2):
        assert matches.after_step(row(3, ignored=[2]), [], who) == []
        assert matches.after_step(row(3, terminated=[0, 1], first=[0, 1], ignored=[2]), ended, who) == over
        assert matches.begins(np.array([True, True, False])).all()
        assert matches.after_step(row(3, first=[0, 1, 2], ignored=[0, 1, 2]), [], who) == []  # a fault


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
    matches, result = Matches(n, num_agents, WON), StepResult.empty(n)
    group.reset(rows)
    num_finished = num_begun = num_episodes = 0
    for _ in range(500):
        ended = group.step(np.zeros((n, 1), np.int32), np.zeros((n, 0), np.float32), rows, result)
        num_episodes += len(ended)
        num_finished += len(matches.after_step(result, ended, np.tile(np.arange(num_agents), num_envs)))
        num_begun += int(matches.begins(result.first).sum())
    assert num_begun == sum(resets) - num_envs  # but for the first of each environment
    assert num_finished - num_begun in range(num_envs + 1)  # those that are over, and not yet reset
    assert num_episodes > 3 * num_finished > 100
