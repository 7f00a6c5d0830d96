"""The progress of a run: what its children have reported, as records, a summary, and figures for the display."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sf.metrics.advice import UnreportedObjective, env_start, first_update, no_episode, slow_env_start
from sf.metrics.bottleneck import Load, bottleneck
from sf.metrics.latest_episodes import EndedEpisode, LatestEpisodes
from sf.metrics.meter import Machine, Meter, Roles, Window
from sf.metrics.policy_progress import PolicyEvent, PolicyProgress, episode_means
from sf.shared.counters import Counters


@dataclass(frozen=True)
class Outlook:
    """Smoothed figures for the display, over the last minute.

    frames_per_second, sampled_frames_per_second: that learners have taken, that rollout workers have stepped.
    has_enough_episodes: to draw their mean. num_waited_for: actors that have yet to end an episode; until then there is
        no mean.
    checkpoint: path of the last one, and how many seconds ago it was written.
    last_events: what evolution did last, by policy.
    first_update: when it is due; empty once it has come.
    env_start: how far the start of environments is; empty once all are there. share_of_envs: that are.
    """

    load: Load | None
    frames_per_second: float = 0.0
    sampled_frames_per_second: float = 0.0
    has_enough_episodes: bool = True
    num_waited_for: int = 0
    checkpoint: tuple[str, float] | None = None
    last_events: tuple[PolicyEvent | None, ...] = ()
    first_update: str = ""
    env_start: str = ""
    share_of_envs: float = 1.0

    @property
    def bottleneck(self) -> str:
        return f"starting: {self.first_update}" if self.first_update else bottleneck(self.load)


@dataclass
class Progress:
    """Collects the reports of the children. `record` makes a record of all that happened since the last one.

    With several policies a record has each name for all of them together, and for each policy behind `policy_00/` and
    so on.
    """

    counters: Counters
    roles: Roles
    frameskip: int
    stats_avg: int  # episodes that means are over, of all ranks
    num_policies: int = 1
    num_actors: int = 1  # of this rank
    objective: str = "true_objective"  # the statistic of episodes that says how good a policy is
    machine: Machine = field(default_factory=Machine)
    num_epochs: int = 1  # of the learner, on the same data
    settings: Mapping[str, int] = field(default_factory=dict)  # flags that the bottleneck's sentence may change
    num_envs: int = 0  # of this rank; 0: not known
    num_steps_before_update: int = 0  # that are sampled before the first one; 0: not known
    is_on_gpu: bool = False
    is_synchronous: bool = False
    num_ranks: int = 1  # whose records are merged
    started_at: float = field(default_factory=time.perf_counter)
    seconds_before: float = 0.0  # wall time of earlier parts of a resumed run
    start: int = 1  # of the run, from 1 on
    num_episodes: int = 0
    num_player_episodes: int = 0  # of players that do not learn
    num_restarts: int = 0  # of processes that died
    num_lost_episodes: int = 0  # that were running in them, were not reported, or were cut by a fault
    num_lost_frames: int = 0  # of those that learners took, without a trace in the weights
    num_env_faults: int = 0  # environments that failed and were made anew
    last_checkpoint: tuple[str, float] | None = None  # its path, and when it was written by time.perf_counter()

    def __post_init__(self) -> None:
        self._meter = Meter(self.counters, self.roles, self.machine)
        own_share = -(-self.stats_avg // self.num_ranks)
        self._latest = LatestEpisodes(self.num_actors, self.num_policies, own_share)
        self.policies = [PolicyProgress(policy_id, self._latest, own_share) for policy_id in range(self.num_policies)]
        self.unreported_objective = UnreportedObjective(self.objective)
        self._is_start_said = False  # that the environments take long
        self._begun: set[int] = set()  # policies whose learners have told where they begin
        self._added: dict[str, Any] = {}  # of the next record
        self._first_trained: tuple[float, int] | None = None  # when the first batch had been trained on
        self._last_trained: tuple[float, int] | None = None

    @property
    def seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.started_at

    @property
    def _seconds_here(self) -> float:
        return time.perf_counter() - self.started_at

    @property
    def _num_envs_ready(self) -> int:
        return int(self.counters.arrays["envs"].sum())

    @property
    def are_judged(self) -> bool:
        """Returns whether the latest episodes of all policies may decide about them."""
        return all(len(policy.judged_episodes) == len(policy.episodes) for policy in self.policies)

    def slow_start(self, num_per_worker: int) -> str | None:
        """Returns a sentence where the environments take long to start, once."""
        if self._is_start_said or not self.num_envs:
            return None
        sentence = slow_env_start(self._num_envs_ready, self.num_envs, self._seconds_here, num_per_worker)
        self._is_start_said = sentence is not None
        return sentence

    @property
    def env_steps(self) -> int:
        """All that learners have taken."""
        return sum(policy.env_steps for policy in self.policies)

    @property
    def has_begun(self) -> bool:
        """Returns whether all learners have told where they begin."""
        return len(self._begun) == self.num_policies

    def resume(self, policy_id: int, env_steps: int, seconds_before: float) -> bool:
        """Go on from an earlier part of the run. Returns False where this policy has begun already."""
        if policy_id in self._begun:
            return False
        self._begun.add(policy_id)
        earlier_steps = env_steps - self.policies[policy_id].env_steps
        if self._first_trained is not None and self._last_trained is not None:  # others have trained since then
            self._first_trained = self._first_trained[0], self._first_trained[1] + earlier_steps
            self._last_trained = self._last_trained[0], self._last_trained[1] + earlier_steps
        self.policies[policy_id].env_steps = env_steps
        self.seconds_before = max(self.seconds_before, seconds_before)
        return True

    def add_episodes(
        self, episodes: Iterable[Sequence[Any]], worker_idx: int = 0, absent: Collection[int] = ()
    ) -> None:
        """episodes: the fields of `EndedEpisode`. Only those of policies that learn are counted as the run's. absent:
        the actors of this rollout worker that have had no step so far."""
        self._latest.note_absent(worker_idx, absent)
        for fields in episodes:
            episode = EndedEpisode(*fields)
            self._latest.add(episode)
            if episode.policy_id < self.num_policies:
                self.num_episodes += 1
            else:
                self.num_player_episodes += 1

    def add_training(self, policy_id: int, env_steps: int, metrics: dict[str, float]) -> None:
        self.policies[policy_id].env_steps = env_steps
        self.policies[policy_id].train.update(metrics)
        self._last_trained = (time.perf_counter(), self.env_steps)
        if self._first_trained is None:
            self._first_trained = self._last_trained
            self._meter.forget_recent()

    def note_checkpoint(self, path: str) -> None:
        self.last_checkpoint = (path, time.perf_counter())

    def add_to_record(self, metrics: dict[str, Any]) -> None:
        """The next record has these metrics, and no other."""
        self._added.update(metrics)

    def record(self) -> dict[str, Any]:
        """One flat record. Shares and rates cover the time since the last one."""
        window = self._meter.look()
        added, self._added = self._added, {}
        return {
            **self._totals(window),
            "sampled_env_frames_per_second": window.rate("rollout") * self.frameskip,
            "episodes": self.num_episodes,
            **self._counts(),
            **self._means(),
            **window.shares(self.num_policies),
            **window.of_search(),
            **window.cores_in_use(),
            **added,
        }

    def outlook(self) -> Outlook:
        """Smoothed figures up to the last record."""
        recent, checkpoint = self._meter.recent(), self.last_checkpoint
        num_ready = self._num_envs_ready
        return Outlook(
            load=self.load(),
            frames_per_second=recent.rate("learner") * self.frameskip,
            sampled_frames_per_second=recent.rate("rollout") * self.frameskip,
            has_enough_episodes=all(policy.has_enough_episodes for policy in self.policies),
            num_waited_for=min(policy.num_waited_for for policy in self.policies),
            checkpoint=checkpoint and (checkpoint[0], time.perf_counter() - checkpoint[1]),
            last_events=tuple(policy.last_event for policy in self.policies),
            first_update=self._first_update(),
            env_start=env_start(num_ready, self.num_envs, self._seconds_here) if num_ready < self.num_envs else "",
            share_of_envs=num_ready / self.num_envs if self.num_envs else 1.0,
        )

    def load(self) -> Load | None:
        """Over the last minute or so; None before anything was trained on."""
        if self._first_trained is None or not self._meter.has_recent:
            return None
        load = self._meter.recent().load(self.num_epochs, self.is_on_gpu, self.is_synchronous)
        return replace(load, now=self.settings)

    def without_episode(self, time_limit: int | None) -> str | None:
        """Returns a sentence if not one episode has ended, for the end of the run. time_limit: see `no_episode`."""
        num_steps = self._meter.sampled()[0] // self.num_actors
        if self.num_episodes or self.num_player_episodes or self.num_env_faults or num_steps == 0:
            return None
        return no_episode(num_steps, time_limit)

    def summary(self) -> dict[str, Any]:
        """The whole run in one record."""
        whole = self._meter.whole()
        steady = 0.0
        if self._first_trained and self._last_trained and self._last_trained[0] > self._first_trained[0]:
            (t0, steps0), (t1, steps1) = self._first_trained, self._last_trained
            steady = (steps1 - steps0) * self.frameskip / (t1 - t0)
        return {
            **self._totals(whole),
            "steady_env_frames_per_second": steady,
            "episodes": self.num_episodes,
            **self._counts(),
            **self._means(),
            **whole.shares(self.num_policies),
            **whole.of_search(),
        }

    def _first_update(self) -> str:
        if self._first_trained is not None or not self.num_steps_before_update:
            return ""
        return first_update(self.num_steps_before_update, *self._meter.sampled())

    def _totals(self, window: Window) -> dict[str, Any]:
        return {
            "start": self.start,
            "stats_avg": self.stats_avg,
            "env_steps": self.env_steps,
            "env_frames": self.env_steps * self.frameskip,
            "seconds": self.seconds,
            "env_frames_per_second": window.rate("learner") * self.frameskip,
        }

    def _counts(self) -> dict[str, int]:
        of_players = {"league/episodes": self.num_player_episodes} if self.num_player_episodes else {}
        return {
            **of_players,
            "restarts": self.num_restarts,
            "lost_episodes": self.num_lost_episodes,
            "lost_frames": self.num_lost_frames,
            "env_faults": self.num_env_faults,
        }

    def _means(self) -> dict[str, Any]:
        if self.num_policies == 1:
            return self.policies[0].means()
        trains = [policy.train for policy in self.policies]
        names = sorted(set().union(*trains))
        of_all = {f"train/{name}": float(np.mean([t[name] for t in trains if name in t])) for name in names}
        means = {**episode_means([episode for policy in self.policies for episode in policy.episodes]), **of_all}
        for policy_id, policy in enumerate(self.policies):
            own = {"env_steps": policy.env_steps, **policy.means(), "true_objective": policy.objective(self.objective)}
            means |= {f"policy_{policy_id:02d}/{name}": value for name, value in own.items()}
        return means
