"""Rewards of teams: what each agent of an environment is trained on, as a linear map of what all of them are paid.

The episodes that are reported keep what the environment paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    matrix = _asked(options, teams, num_agents)
    return None if np.array_equal(matrix, np.eye(num_agents)) else matrix


def _asked(options: TeamOptions, teams: Sequence[int], num_agents: int) -> np.ndarray:
    return reward_matrix(num_agents, teams, options.share_reward, options.team_spirit, options.zero_sum)


class TeamRewards(Recorder):
    """Writes the rewards that agents are trained on in place of those that the environment paid.

    An agent whose row is not valid gets nothing there.
    """

    def __init__(self, matrix: np.ndarray, reward: np.ndarray) -> None:
        """matrix: [A, A] of `reward_matrix`, or [N, A], a row for each actor. reward: [num_slots, T]."""
        self.matrix = matrix
        self._num_agents = matrix.shape[1]
        self._reward = reward

    def after_step(self, step: Step) -> None:
        paid = step.result.reward.reshape(-1, self._num_agents)  # [E, A]
        rows = self.matrix.reshape(-1, self._num_agents, self._num_agents)  # [E or 1, A, A]
        shared = (rows @ paid[:, :, None]).ravel()  # [N]
        self._reward[step.slots, step.t] = np.where(step.result.valid, shared, 0.0)


class TeamSpirit(Recorder):
    """Keeps `TeamRewards` at the team spirit that the schedule of each policy has."""

    def __init__(
        self, rewards: TeamRewards, options: TeamOptions, teams: Sequence[int], spirits: np.ndarray, policy: np.ndarray
    ) -> None:
        """teams: [A]. spirits: [P] of the policies, a view. policy: [N] of `Assignment`."""
        self._rewards, self._options, self._teams = rewards, options, teams
        self._spirits, self._policy = spirits, policy
        self._agents = np.arange(len(policy)) % len(teams)  # [N]

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._set()

    def after_step(self, step: Step) -> None:
        if len(self._spirits) > 1 and step.begins.any():
            self._set()

    def _set(self) -> None:
        now = [replace(self._options, team_spirit=spirit) for spirit in self._spirits.tolist()]
        of_policies = np.stack([_asked(each, self._teams, len(self._teams)) for each in now])  # [P, A, A]
        policy = np.minimum(self._policy, len(of_policies) - 1)
        self._rewards.matrix = of_policies[policy, self._agents]
