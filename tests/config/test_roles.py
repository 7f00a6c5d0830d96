"""Roles: which policies play which agents."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from sf.config import Config
from sf.config.roles import populations, require_roles_of_players, roles_of, roles_of_patterns
from sf.envs import EnvSpec
from sf.evaluation.play.episodes import lineups_by_role
from sf.rollout.assignment import Assignment, AssignmentRules

SPEC = EnvSpec(
    gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (1,))),
    gym.spaces.Discrete(2),
    num_agents=4,
    agents=("wolf_0", "sheep_0", "sheep_1", "sheep_2"),
)
ROLES = ((0,), (1, 2), (1, 2), (1, 2))


def roles(policy_of, num_policies=3):
    return roles_of(Config().replace(policy_of=policy_of, num_policies=num_policies).population, SPEC, "herd")


def test_patterns_name_the_policies_of_agents():
    assert roles('{"wolf_*": 0, "sheep_*": [2, 1]}') == ROLES
    assert roles({"wolf_*": 0, "sheep_*": [1, 2]}) == ROLES
    assert roles(None) == ()
    assert populations(ROLES, 3) == [[0], [1, 2]]
    assert populations((), 3) == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("policy_of", "what"),
    [
        ('{"wolf_*": 0, "sheep_*": [1, 2], "goat_*": 1}', "goat_"),
        ('{"wolf_*": 0, "sheep_*": [1, 2], "*_1": 1}', "sheep_1"),
        ('{"wolf_*": 0, "sheep_0": [1, 2]}', "sheep_1, sheep_2"),
        ('{"wolf_*": 0, "sheep_*": 1}', "policy 2"),
        ('{"wolf_*": 0, "sheep_*": [1, 2, 3]}', "policy 3"),
        ('{"wolf_*": 0, "sheep_*": []}', "policy_of"),
        ('["wolf_*"]', "policy_of"),
        ("{wolf", "policy_of"),
    ],
)
def test_what_is_no_assignment_of_all_policies_to_all_agents_is_refused(policy_of, what):
    with pytest.raises(ValueError, match=what):
        roles(policy_of)


@pytest.mark.parametrize(
    ("own_roles", "teams", "flags", "what"),
    [
        (((0, 1, 2),) * 4, (), {}, "has one role"),
        (((0, 1), (1, 2), (1, 2), (1, 2)), (), {}, "policy 1 two roles"),
        (((0,), (1, 2), (1, 2), (1, 2)), (0, 0, 1, 1), {}, "two teams"),
        (((0,), (1, 2), (1, 2), (1, 2)), (), {"exploiters": 2, "num_policies": 3}, r"alone \(1, 2\)"),
        ((), (), {"players": ("random",), "player_roles": ("wolf_0",)}, "player_roles"),
    ],
)
def test_opponents_that_have_no_role_of_their_own_are_refused(own_roles, teams, flags, what):
    config = Config().replace(past_share=0.5, **{"num_policies": 3, **flags})
    with pytest.raises(ValueError, match=what):
        require_roles_of_players(own_roles, config.population, config.players, replace(SPEC, teams=teams))


def test_a_pattern_says_which_roles_a_player_may_play():
    patterns = ["wolf_0", "sheep_*", "*", "*_0"]
    assert roles_of_patterns(patterns, ROLES, SPEC) == [{0}, {1}, {0, 1}, {0}]
    with pytest.raises(ValueError, match="sheep_1"):
        roles_of_patterns(["sheep_1"], ROLES, SPEC)


def test_each_role_is_played_by_one_policy_of_its_own_that_is_drawn_anew_for_each_match():
    rules = AssignmentRules(num_policies=3, mixed=True, num_agents=4, rollouts_per_draw=0, roles=ROLES)
    assignment = Assignment(rules, 8, rollout=5, rng=np.random.default_rng(0))
    seen = set()
    for _ in range(100):
        for match in assignment.policy.reshape(-1, 4).tolist():
            assert match[0] == 0
            assert len(set(match[1:])) == 1
            seen.add(tuple(match))
        assignment.after_step(np.repeat([True, False], 4))
        assert (assignment.learner == assignment.policy).all()
    assert seen == {(0, 1, 1, 1), (0, 2, 2, 2)}


def test_in_evaluations_each_policy_of_a_role_plays_it_equally_often():
    lineups = lineups_by_role(ROLES, 10, seed=3)
    assert (lineups[:, 0] == 0).all()
    assert (lineups[:, 1:] == lineups[:, 1:2]).all()
    counts = np.bincount(lineups.ravel(), minlength=3)
    assert (counts >= 10).all()
    assert counts[1] == counts[2]
