"""Teams through the real processes: who plays whom, and what reaches the learner's batches."""

from collections import defaultdict

import numpy as np
import pytest
from recorded import AGENT, ENV_IDX, EPISODE, STEP, recorded

from sf.envs.toys.matches import CountingMatch
from sf.rollout.rewards import reward_matrix

TEAMS = (0, 1, 1, 0)


@pytest.fixture(scope="module")
def trajectories(tmp_path_factory):
    found, _ = recorded(
        tmp_path_factory.mktemp("train"),
        num_policies=2,
        env_kwargs='{"num_agents": 4}',
        teams=[["agent_[03]"], ["agent_[12]"]],
        team_spirit=0.25,
        zero_sum=True,
    )
    return found


def paid(env_idx, episode, step):
    """[A] what the environment pays each agent in this step of a match: step + 1 while it plays."""
    plays = [step < CountingMatch.num_steps(env_idx, agent, episode) for agent in range(4)]
    return np.array(plays, np.float32) * (step + 1)


def test_minibatches_have_the_rewards_of_teams(trajectories):
    matrix = reward_matrix(4, TEAMS, team_spirit=0.25, zero_sum=True)
    left_alone = 0
    for rows in trajectories.values():
        obs, valid = rows["obs"][:-1].astype(int), rows["valid"]
        assert valid.sum() > 500
        for seen, reward in zip(obs[valid], rows["reward"][valid], strict=True):
            of_match = paid(seen[ENV_IDX], seen[EPISODE], seen[STEP])
            assert reward == pytest.approx(matrix[seen[AGENT]] @ of_match, abs=1e-5)
            left_alone += (of_match > 0).sum() == 1
    assert left_alone > 0


def test_one_policy_plays_each_team_of_a_match(trajectories):
    policies = defaultdict(set)  # by match and team
    for policy_id, rows in trajectories.items():
        for seen in rows["obs"][:-1][rows["valid"]].astype(int):
            policies[seen[ENV_IDX], seen[EPISODE], TEAMS[seen[AGENT]]].add(policy_id)
    assert all(len(of_team) == 1 for of_team in policies.values())
    matches = {match[:2] for match in policies}
    met = {tuple(min(policies[(*match, team)], default=None) for team in range(2)) for match in matches}
    assert met >= {(0, 0), (0, 1), (1, 0), (1, 1)}
