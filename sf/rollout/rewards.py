"""Rewards of teams: what each agent of an environment is trained on, as a linear map of what all of them are paid.

The episodes that are reported keep what the environment paid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sf.envs.teams import TeamOptions
from sf.rollout.recorders import Recorder, Step


def reward_matrix(
    num_agents: int,
    teams: Sequence[int],
    share_reward: bool | str = "none",
    team_spirit: float = 0.0,
    zero_sum: bool = False,
) -> np.ndarray:
    """Returns M [A, A] float32 such that agent a is trained on the sum over b of M[a, b] * reward[b].

    teams: [A], or () where all that is asked for needs none. Flags as in `sf.envs.teams.TeamOptions`; they are applied
    in this order, where n is the size of the team of a:

    - share_reward: all 1, or 1 where a and b are in one team, or 1 where a is b.
    - team_spirit s: (1 - s) where a is b, plus s / n where a and b are in one team. OpenAI et al. 2019, "Dota 2 with
      Large Scale Deep Reinforcement Learning", appendix on rewards.
    - zero_sum: less the mean over the other teams of the mean over their agents.
    """
    own = np.eye(num_agents)
    matrix = np.ones_like(own) if share_reward == "all" else own
    if teams:
        assert len(teams) == num_agents, teams
        _, of_agents = np.unique(teams, return_inverse=True)
        members = np.eye(of_agents.max() + 1)[:, of_agents]  # [K, A] 1 where the agent is in the team
        means = members / members.sum(axis=1, keepdims=True)
        if share_reward == "team":
            matrix = members[of_agents]
        matrix = (1.0 - team_spirit) * matrix + team_spirit * means[of_agents] @ matrix
        if zero_sum:
            of_teams = means @ matrix  # [K, A]
            num_others = len(of_teams) - 1
            matrix = matrix - (of_teams.sum(axis=0) - of_teams[of_agents]) / num_others
    return matrix.astype(np.float32)


def matrix_of(options: TeamOptions, num_agents: int, teams: Sequence[int]) -> np.ndarray | None:
    """Returns the matrix that the flags ask for, or None where each agent is trained on its own reward."""
    matrix = reward_matrix(num_agents, teams, options.share_reward, options.team_spirit, options.zero_sum)
    return None if np.array_equal(matrix, np.eye(num_agents)) else matrix


class TeamRewards(Recorder):
    """Writes the rewards that agents are trained on in place of those that the environment paid.

    An agent whose row is not valid gets nothing there.
    """

    def __init__(self, matrix: np.ndarray, reward: np.ndarray) -> None:
        """matrix: [A, A] of `reward_matrix`. reward: [num_slots, T]."""
        self._matrix = matrix
        self._reward = reward

    def after_step(self, step: Step) -> None:
        paid = step.result.reward.reshape(-1, len(self._matrix)) @ self._matrix.T  # [E, A]
        self._reward[step.slots, step.t] = np.where(step.result.valid, paid.ravel(), 0.0)
