"""Recorders of what `--anneal` changes in rollout workers: options of the environment, and flags of the sampler."""

from __future__ import annotations

import numpy as np

from sf.config.schedules import ENV, Drawn
from sf.envs import EnvOptions, Episode
from sf.envs.added.episode_options import Range
from sf.envs.guard import GuardedGroup
from sf.envs.remarks import remark
from sf.rollout.assignment import Assignment
from sf.rollout.recorders import Recorder, Step
from sf.rollout.rewards import TeamRewards, TeamSpirit
from sf.shared.scheduled import Scheduled

TEAM_SPIRIT, PAST_SHARE = "team_spirit", "past_share"
_OF_EPISODES = {"mean_return": "episode_return", "mean_episode_steps": "num_steps"}
"""Metrics that are attributes of an `Episode`."""


def option_ranges(scheduled: Scheduled, policy_id: int) -> dict[str, Range]:
    """Returns the ranges that the options of an episode of this policy are drawn from now, by name."""
    row, found = scheduled.arrays["values"][policy_id].tolist(), {}
    for schedule, value in zip(scheduled.schedules, row, strict=True):
        if schedule.name.startswith(ENV):
            ends = (schedule.start, schedule.end) if isinstance(schedule, Drawn) else (value, value)
            found[schedule.name.removeprefix(ENV)] = ends
    return found


def recorders_of(
    scheduled: Scheduled,
    envs: GuardedGroup,
    assignment: Assignment,
    actors: np.ndarray,
    options: EnvOptions,
    rewards: TeamRewards,
) -> dict[str, Recorder]:
    """Returns the recorders of the schedules, by what they are for. actors: [N] of all groups, those of this one."""
    values, columns = scheduled.arrays["values"], scheduled.columns
    found: dict[str, Recorder] = {}
    if TEAM_SPIRIT in columns:
        spirits = values[:, columns[TEAM_SPIRIT]]
        found[TEAM_SPIRIT] = TeamSpirit(rewards, options, envs.spec.teams, spirits, assignment.policy)
    if PAST_SHARE in columns:
        found[PAST_SHARE] = PastShare(values[:, columns[PAST_SHARE]], assignment)
    if scheduled.by_metric or any(name.startswith(ENV) for name in columns):
        found["episodes"] = ScheduledEpisodes(envs, scheduled, assignment, actors)
    return found


class ScheduledEpisodes(Recorder):
    """Tells each environment the options of its next episode, and adds up the metrics that decide about schedules.

    The options are those of the policy that plays its first agent. A metric counts for a value if the episode began
    with it.
    """

    def __init__(self, envs: GuardedGroup, scheduled: Scheduled, assignment: Assignment, actors: np.ndarray) -> None:
        """actors: [N] of all groups, those of this one."""
        self._envs, self._scheduled, self._assignment, self._actors = envs, scheduled, assignment, actors
        self._num_agents = envs.spec.num_agents
        self._has_options = any(schedule.name.startswith(ENV) for schedule in scheduled.schedules)
        self._by_metric = scheduled.by_metric
        self._values = scheduled.arrays["values"]  # [P, K]
        num_envs = len(actors) // self._num_agents
        self._told = np.full((num_envs, self._values.shape[1]), np.inf)  # [E, K], of the next episodes
        # [E, K] of the present ones: environments are made with those of the first policy.
        self._began = np.tile(self._values[0], (num_envs, 1))

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._tell()

    def after_step(self, step: Step) -> None:
        if self._by_metric:
            for episode in step.finished:
                self._add(episode)
        if step.result.first.any():
            begins = (step.result.first & ~step.result.joined).reshape(-1, self._num_agents).any(axis=1)
            self._began[begins] = self._told[begins]
            if len(self._values) > 1:
                self._tell()

    def _present(self) -> np.ndarray:
        """Returns [E, K]."""
        policy = self._assignment.policy[:: self._num_agents]
        return self._values[np.minimum(policy, len(self._values) - 1)]

    def _tell(self) -> None:
        present = self._present()
        changed = ((present != self._told) & ~np.isnan(present)).any(axis=1)
        if not changed.any():
            return
        self._told = present
        if self._has_options:
            policy = np.minimum(self._assignment.policy[:: self._num_agents], len(self._values) - 1)
            for env_idx in np.flatnonzero(changed).tolist():
                self._envs.set_ranges(env_idx, option_ranges(self._scheduled, int(policy[env_idx])))

    def _add(self, episode: Episode) -> None:
        n = episode.actor_idx
        policy_id = int(self._assignment.ended_with[n])
        if policy_id >= len(self._values):
            return
        is_present = self._began[n // self._num_agents] == self._values[policy_id]
        for column, schedule in self._by_metric.items():
            value = _metric(episode, schedule.metric)
            if value is None:
                remark(
                    f"anneal {schedule.name}",
                    f"anneal: an episode reports no {schedule.metric!r}, which {schedule.name} waits for; it reports "
                    f"{', '.join([*_OF_EPISODES, *episode.stats])}",
                )
            elif is_present[column]:
                at = policy_id, column, self._actors[n]
                self._scheduled.arrays["sums"][at] += value
                self._scheduled.arrays["counts"][at] += 1


def _metric(episode: Episode, name: str) -> float | None:
    attribute = _OF_EPISODES.get(name)
    return episode.stats.get(name) if attribute is None else float(getattr(episode, attribute))


class PastShare(Recorder):
    """Keeps the share of the matches that are against past selves where the schedule of the first policy has it."""

    def __init__(self, shares: np.ndarray, assignment: Assignment) -> None:
        """shares: [P], a view."""
        self._shares, self._assignment = shares, assignment

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._assignment.past_share = float(self._shares[0])

    def after_step(self, step: Step) -> None:
        pass
