"""The rollout worker: steps its groups of environments, and holds no policy.

Consumes   answers of policy workers (group indices in its inbox), free slots.
Produces   requests for actions, filled slots for the learner, episode records for the parent.
Waits for  an answer for any of its groups; at the end of a rollout, for free slots.
Unblocked  by a policy worker; by the learner that gives slots back; by STOP in either queue.

While the policy workers compute the actions of one group it steps another: double buffering.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np

import envs
from envs import EnvGroup, EnvOptions, Episode, StepResult
from sf.channels import Channels
from sf.counters import CounterRow
from sf.processes import Reports
from sf.queues import STOP
from sf.slots import OBS, SlotPool, StopRequested

_REPORT_EPISODES_EVERY_S = 0.5


@dataclass(frozen=True)
class RolloutWorkerArgs:
    """Everything a rollout worker needs to know."""

    worker_idx: int
    env: str
    options: EnvOptions
    num_envs_per_group: int
    rollout: int
    seed: int
    core: int | None  # pin this process, and the simulators it starts, to that core
    pool: SlotPool
    channels: Channels
    counters: CounterRow


def rollout_worker(reports: Reports, args: RolloutWorkerArgs) -> None:
    """Body of the process."""
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    episodes = _EpisodeReports(reports)
    channels, counters = args.channels, args.counters
    inbox = channels.inboxes[args.worker_idx]
    first_group = args.worker_idx * channels.groups_per_worker
    groups = {g: _Group(g, args) for g in range(first_group, first_group + channels.groups_per_worker)}
    try:
        for group in groups.values():
            group.resume(wait=True)
        reports.send("ready")
        while True:
            waiting_since = time.perf_counter()
            all_parked = all(group.is_parked for group in groups.values())
            answered = [] if all_parked else inbox.get_many()
            busy_since = time.perf_counter()
            if STOP in answered:
                return
            for group_idx in answered:
                episodes.add(groups[group_idx].advance())
            slot_wait_since = time.perf_counter()
            _resume_parked(list(groups.values()))
            now = time.perf_counter()
            counters.add(
                steps=len(answered) * channels.actors_per_group,
                calls=len(answered),
                wait_s=busy_since - waiting_since,
                busy_s=slot_wait_since - busy_since,
                slot_wait_s=now - slot_wait_since,
            )
            episodes.send_if_due(now)
    except StopRequested:
        return
    finally:
        episodes.send()
        for group in groups.values():
            group.close()


def _resume_parked(groups: list[_Group]) -> None:
    """Begin new rollouts where there are slots. Wait for slots only while no group at all can go on: otherwise an
    answer for one of them may be under way.
    """
    for group in groups:
        if group.is_parked:
            group.resume(wait=all(other.is_parked for other in groups))


class _Group:
    """A group of environments with the slots it fills."""

    def __init__(self, group_idx: int, args: RolloutWorkerArgs) -> None:
        self._group_idx = group_idx
        self._worker_idx = args.worker_idx
        self._rollout = args.rollout
        self._pool = args.pool
        self._channels = args.channels
        self._rows = args.pool.arrays
        self._obs = args.pool.arrays.named(OBS)  # [num_slots, T+1, ...]
        self._envs: EnvGroup = envs.make_group(
            args.env,
            args.num_envs_per_group,
            args.options,
            seed=args.seed,
            first_env_idx=group_idx * args.num_envs_per_group,
            core=args.core,
        )
        num_actors = args.channels.actors_per_group
        self._actors = np.arange(group_idx * num_actors, (group_idx + 1) * num_actors)
        self._result = StepResult.empty(num_actors)
        self._slots: list[int] = []
        self._row = 0
        self._last_obs: dict[str, np.ndarray] | None = None  # [N, ...], row T of the slots handed over last
        self._last_first: np.ndarray | None = None  # [N]

    @property
    def is_parked(self) -> bool:
        """Whether it has filled its slots and has not all of the next ones yet."""
        return len(self._slots) < len(self._actors)

    def resume(self, wait: bool) -> None:
        """Begin a rollout in new slots and ask for its first actions, if there are slots enough (or wait for them)."""
        num_actors = len(self._actors)
        while len(self._slots) < num_actors:
            taken = self._pool.take(num_actors - len(self._slots), self._worker_idx, wait)
            if not taken:
                return
            self._slots += taken
        self._rows["actor"][self._slots] = self._actors
        self._channels.tables["slots"][self._group_idx] = self._slots
        self._row = 0
        if self._last_obs is None:
            self._envs.reset(self._obs_rows(0))
            self._rows["first"][self._slots, 0] = True
        else:
            for key, array in self._obs.items():
                array[self._slots, 0] = self._last_obs[key]
            self._rows["first"][self._slots, 0] = self._last_first
        self._request()

    def advance(self) -> list[Episode]:
        """Apply the actions that have come; ask for the next ones, or hand over what is full."""
        finished = self._step()
        if self._row < self._rollout:
            self._request()
        else:
            self._hand_over()
        return finished

    def close(self) -> None:
        self._envs.close()

    def _step(self) -> list[Episode]:
        """Apply the actions of the present row, and write what they caused."""
        rows, slots, t, result = self._rows, self._slots, self._row, self._result
        finished = self._envs.step(
            rows["discrete"][slots, t], rows["continuous"][slots, t], self._obs_rows(t + 1), result
        )
        rows["reward"][slots, t] = result.reward
        rows["terminated"][slots, t] = result.terminated
        rows["truncated"][slots, t] = result.truncated
        rows["valid"][slots, t] = result.valid
        rows["first"][slots, t + 1] = result.first
        self._row = t + 1
        return finished

    def _request(self) -> None:
        """Ask the policy workers for the actions of the present row."""
        self._channels.tables["row"][self._group_idx] = self._row
        self._channels.requests.put(self._group_idx)

    def _hand_over(self) -> None:
        """Give the filled slots to the learner; their last observations begin the next ones."""
        self._last_obs = {key: array[self._slots, self._rollout] for key, array in self._obs.items()}
        self._last_first = self._rows["first"][self._slots, self._rollout]
        self._pool.hand_over(self._slots)
        self._slots = []

    def _obs_rows(self, t: int) -> dict[str, list[np.ndarray]]:
        return {key: [array[slot, t] for slot in self._slots] for key, array in self._obs.items()}


class _EpisodeReports:
    """Collects finished episodes and sends them to the parent a few times a second."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._waiting: list[list] = []
        self._sent_at = 0.0

    def add(self, episodes: list[Episode]) -> None:
        for episode in episodes:
            stats = {name: float(value) for name, value in episode.stats.items()}
            self._waiting.append(
                [float(episode.episode_return), int(episode.num_steps), int(episode.num_frames), stats]
            )

    def send_if_due(self, now: float) -> None:
        if now - self._sent_at > _REPORT_EPISODES_EVERY_S:
            self.send()
            self._sent_at = now

    def send(self) -> None:
        if self._waiting:
            self._reports.send("episodes", episodes=self._waiting)
            self._waiting = []
