"""The rollout worker: steps its groups of environments, and holds no policy.

Consumes   answers of policy workers, free slots (both told by a group index in its inbox).
Produces   requests for actions, filled slots for the learner, episode records and results of matches for the parent.
Waits for  an answer for any of its groups, or a free slot.
Unblocked  by a policy worker; by the learner that gives slots back; by a stop.

While the policy workers compute the actions of one group it steps another: double buffering.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict

from sf.envs import Episode
from sf.envs.guard import EnvFaultError
from sf.envs.remarks import handed_to
from sf.envs.seeding import seed_process
from sf.rollout.args import RolloutWorkerArgs
from sf.rollout.group import RolloutGroup
from sf.rollout.matches import PlayedMatch
from sf.shared.queues import StopRequested
from sf.system.processes.child import FinalError, SaidError
from sf.system.processes.reports import EnvFault, Episodes, MatchesPlayed, Ready, Reports

_REPORT_EPISODES_EVERY_S = 0.5


def rollout_worker(reports: Reports, args: RolloutWorkerArgs) -> None:
    """Body of the process."""
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    seed_process(args.seed, *args.seed_key, *args.channel.groups)
    if args.found_tasks is not None and not args.is_serial:
        args.found_tasks.take_over()
    with handed_to(reports.remark):
        _collect(reports, args)


def _collect(reports: Reports, args: RolloutWorkerArgs) -> None:
    args.counters.working()
    args.counters.add(away=-args.counters.get("away"), envs=-args.counters.get("envs"))  # of a worker before
    worker = RolloutWorker(reports, args)
    try:
        reports.send(Ready())
        while True:
            worker.step()
    except StopRequested:
        return
    except EnvFaultError as error:  # whose traceback is that of a fault
        is_hopeless = args.is_first_start and not error.has_worked
        raise (FinalError if is_hopeless else SaidError)(str(error)) from None
    finally:
        worker.close()


class RolloutWorker:
    """The groups of a rollout worker, and what it does for each message."""

    def __init__(self, reports: Reports, args: RolloutWorkerArgs) -> None:
        self._reports = reports
        self._channel = args.channel
        self._counters = args.counters
        self._groups: dict[int, RolloutGroup] = {}
        for group_idx in args.channel.groups:
            self._groups[group_idx] = RolloutGroup(group_idx, args)
            args.counters.add(envs=args.num_envs_per_group)
        self._episodes = _EpisodeReports(reports, self._groups, args.is_synchronous)

    def step(self) -> None:
        """Wait for messages, and step the groups that they are about. Raises StopRequested."""
        groups, channel, counters, episodes = self._groups, self._channel, self._counters, self._episodes
        counters.waiting("slot_wait_s" if all(group.is_parked for group in groups.values()) else "wait_s")
        looked_at = channel.wait()
        counters.working()
        answered = channel.take(looked_at)
        env_steps = num_rows = 0
        for group_idx in answered:
            group = groups[group_idx]
            num_away = group.num_away
            finished, num_cut = group.advance(), group.pop_num_cut()
            env_steps += group.num_env_steps
            num_rows += group.num_rows
            counters.add(  # what is not reported before this process dies is lost
                episodes=len(finished) + num_cut, away=group.num_away - num_away
            )
            episodes.add(group_idx, finished, num_cut)
            episodes.played += group.pop_played()
        for group_idx in looked_at:
            if groups[group_idx].begin_if_it_can():
                episodes.release(group_idx)
        counters.add(steps=env_steps, rows=num_rows, calls=len(answered))
        episodes.send_if_due(time.perf_counter())
        self._report_faults()

    def close(self) -> None:
        """Report what has ended, and close the environments."""
        for group_idx, group in self._groups.items():
            if group.is_parked and group.is_taken:
                self._episodes.release(group_idx)
        self._counters.add(episodes=-self._episodes.num_held)
        self._episodes.send()
        self._report_faults()
        for group in self._groups.values():
            group.close()

    def _report_faults(self) -> None:
        for group in self._groups.values():
            for fault in group.pop_faults():
                self._reports.send(EnvFault(**asdict(fault)))


class _EpisodeReports:
    """Collects finished episodes and matches, and sends them to the parent a few times a second.

    In synchronous mode it holds those of a rollout until the learner has taken that. So two runs with equal weights
    report equal scores, whenever their processes stop.
    """

    def __init__(self, reports: Reports, groups: Mapping[int, RolloutGroup], is_synchronous: bool) -> None:
        self._reports = reports
        self._groups = groups
        self._is_synchronous = is_synchronous
        now = time.monotonic()
        self._began = {actor: now for group in groups.values() for actor in group.actors.tolist()}  # or earlier
        self._held: defaultdict[int, list[list]] = defaultdict(list)  # by group
        self._waiting: list[list] = []
        self._num_cut = 0
        self.played: list[PlayedMatch] = []
        self._sent_at = 0.0

    def add(self, group_idx: int, episodes: list[Episode], num_cut: int) -> None:
        """Add what the last step of a group has ended. num_cut: episodes that a fault has ended."""
        group, now = self._groups[group_idx], time.monotonic()
        self._num_cut += num_cut
        for episode in episodes:
            actor = int(group.actors[episode.actor_idx])
            self._held[group_idx].append(
                [
                    float(episode.episode_return),
                    int(episode.num_steps),
                    int(episode.num_frames),
                    {name: float(value) for name, value in episode.stats.items()},
                    int(group.ended_with[episode.actor_idx]),
                    actor,
                    self._began[actor],
                ]
            )
            self._began[actor] = now
        if not self._is_synchronous:
            self.release(group_idx)

    def release(self, group_idx: int) -> None:
        """Let the episodes of a group be sent."""
        self._waiting += self._held.pop(group_idx, [])

    @property
    def num_held(self) -> int:
        return sum(map(len, self._held.values()))

    def send_if_due(self, now: float) -> None:
        if now - self._sent_at > _REPORT_EPISODES_EVERY_S:
            self.send()
            self._sent_at = now

    def send(self) -> None:
        if self._waiting or self._num_cut:
            absent = [actor for group in self._groups.values() for actor in group.absent]
            self._reports.send(Episodes(self._waiting, self._num_cut, absent))
            self._waiting, self._num_cut = [], 0
        if self.played:
            self._reports.send(MatchesPlayed(self.played))
            self.played = []
