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
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict

import numpy as np

from sf.envs import Episode
from sf.envs.guard import EnvFaultError
from sf.envs.remarks import handed_to
from sf.envs.seeding import seed_process
from sf.processes.child import FinalError, SaidError
from sf.processes.reports import EnvFault, Episodes, Ready, Reports
from sf.queues import StopRequested
from sf.rollout.group import RolloutGroup, RolloutWorkerArgs
from sf.storage.match_journal import Journal

_REPORT_EPISODES_EVERY_S = 0.5


def rollout_worker(reports: Reports, args: RolloutWorkerArgs) -> None:
    """Body of the process."""
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    seed_process(args.seed, *args.seed_key, *args.channel.groups)
    with handed_to(reports.remark):
        _collect(reports, args)


def _collect(reports: Reports, args: RolloutWorkerArgs) -> None:
    episodes = _EpisodeReports(reports, args)
    channel, counters = args.channel, args.counters
    counters.working()
    counters.add(away=-counters.get("away"))  # of a worker before
    journal = Journal(args.run_dir)
    groups = {group_idx: RolloutGroup(group_idx, args, journal) for group_idx in channel.groups}
    try:
        reports.send(Ready())
        while True:
            counters.waiting("slot_wait_s" if all(group.is_parked for group in groups.values()) else "wait_s")
            looked_at = channel.wait()
            counters.working()
            answered = channel.take(looked_at)
            env_steps = 0
            for group_idx in answered:
                group = groups[group_idx]
                num_away = group.num_away
                finished, num_cut = group.advance(), group.pop_num_cut()
                env_steps += group.num_env_steps
                counters.add(  # what is not reported before this process dies is lost
                    episodes=len(finished) + num_cut, away=group.num_away - num_away
                )
                episodes.add(group_idx, finished, group.ended_with, num_cut)
            for group_idx in looked_at:
                if groups[group_idx].begin_if_it_can():
                    episodes.release(group_idx)
            counters.add(steps=env_steps, rows=len(answered) * channel.actors_per_group, calls=len(answered))
            episodes.send_if_due(time.perf_counter())
            _report_faults(reports, groups.values())
    except StopRequested:
        return
    except EnvFaultError as error:  # whose traceback is that of a fault
        is_hopeless = args.is_first_start and not error.has_worked
        raise (FinalError if is_hopeless else SaidError)(str(error)) from None
    finally:
        for group_idx, group in groups.items():
            if group.is_parked and group.is_taken:
                episodes.release(group_idx)
        counters.add(episodes=-episodes.num_held)
        episodes.send()
        _report_faults(reports, groups.values())
        journal.close()
        for group in groups.values():
            group.close()


def _report_faults(reports: Reports, groups: Iterable[RolloutGroup]) -> None:
    for group in groups:
        for fault in group.pop_faults():
            reports.send(EnvFault(**asdict(fault)))


class _EpisodeReports:
    """Collects finished episodes and sends them to the parent a few times a second.

    In synchronous mode it holds those of a rollout until the learner has taken that, and says where they belong in the
    order of all. So two runs with equal weights report equal scores, whenever their processes stop.
    """

    def __init__(self, reports: Reports, args: RolloutWorkerArgs) -> None:
        self._reports = reports
        self._is_synchronous = args.is_synchronous
        self._start = args.seed_key[-1]  # of this worker
        self._num_steps: Counter[int] = Counter()  # by group
        self._held: defaultdict[int, list[list]] = defaultdict(list)  # by group
        self._waiting: list[list] = []
        self._num_cut = 0
        self._sent_at = 0.0

    def add(self, group_idx: int, episodes: list[Episode], policy: np.ndarray, num_cut: int) -> None:
        """Add what a step of a group has ended. policy: [N], who played each actor. num_cut: episodes that a fault has
        ended."""
        self._num_cut += num_cut
        self._num_steps[group_idx] += 1
        order = [self._start, self._num_steps[group_idx], group_idx] if self._is_synchronous else []
        for episode in episodes:
            stats = {name: float(value) for name, value in episode.stats.items()}
            played_by = int(policy[episode.actor_idx])
            self._held[group_idx].append(
                [
                    float(episode.episode_return),
                    int(episode.num_steps),
                    int(episode.num_frames),
                    stats,
                    played_by,
                    *order,
                ]
            )
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
            self._reports.send(Episodes(self._waiting, self._num_cut))
            self._waiting, self._num_cut = [], 0
