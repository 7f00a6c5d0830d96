"""The progress of one policy: its latest episodes, its training, and the last decision of evolution.

Its episodes are the latest of every actor: a sample in which short episodes are no likelier than long ones.
Of the episodes that end first, too many are short: the long ones are still under way. The latest episodes of a run are
biased, too, where many environments have begun together. The latest episode of each actor is not. Let f(l) be the
probability that an episode takes l steps, and u(s) that one begins s steps after the start. The latest episode that has
ended by step t, where no episode takes longer than t, took l steps with probability

    f(l) sum_s u(s) P(the next episode takes more than t - l - s steps) = f(l)

since the sum is over all beginnings of the episode that is under way at step t - l. The same is true of the j-th latest
at a later step. So the same number of episodes is taken of each actor, and none before each has ended one.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sf.config.flags.population import PopulationConfig
from sf.storage.run_records import enough_episodes
from sf.system.processes.reports import WIN_RATE

_SPARE = 4  # times as many episodes are kept as are taken, for policies that play less often than others


class EndedEpisode(NamedTuple):
    """began: by time.monotonic(), or earlier: when the actor's episode before has ended."""

    episode_return: float
    num_steps: int
    num_frames: int
    stats: Mapping[str, float]
    policy_id: int  # who has played it
    actor: int
    began: float


class LatestEpisodes:
    """num_wanted: how many episodes means are over, of each policy. An actor may be played by one after the other."""

    def __init__(self, num_actors: int, num_policies: int, num_wanted: int) -> None:
        most = math.ceil(_SPARE * num_policies * num_wanted / num_actors)
        self._num_wanted = num_wanted
        self._of_actor = [deque[EndedEpisode](maxlen=most) for _ in range(num_actors)]  # the latest is the last
        self._absent: dict[int, Collection[int]] = {}  # by rollout worker

    def add(self, episode: EndedEpisode) -> None:
        self._of_actor[episode.actor].append(episode)

    def note_absent(self, worker_idx: int, actors: Collection[int]) -> None:
        """actors: those of this worker that no match has had so far. They may never come, and are not waited for."""
        self._absent[worker_idx] = actors

    def num_waited_for(self, since: float) -> int:
        """Actors that have yet to end an episode which began since then."""
        return sum(num == 0 for num in self._num_ended(since))

    def of(self, policy_id: int, since: float) -> list[EndedEpisode]:
        """The latest of this policy, of those that began since then: of the same number of episodes of each actor, one
        at least, and as many as give `num_wanted`. Empty while an actor has ended none."""
        newest_first = [[each for each in reversed(episodes) if each.began >= since] for episodes in self._of_actor]
        found: list[EndedEpisode] = []
        for nth in range(min(self._num_ended(since), default=0)):
            of_each = [episodes[nth] for episodes in newest_first if len(episodes) > nth]
            found += [each for each in of_each if each.policy_id == policy_id]
            if len(found) >= self._num_wanted:
                break
        return found

    def _num_ended(self, since: float) -> list[int]:
        """Counts the ended episodes of each actor that is waited for."""
        absent = set[int]().union(*self._absent.values())
        return [
            sum(episode.began >= since for episode in episodes)
            for actor, episodes in enumerate(self._of_actor)
            if actor not in absent
        ]


@dataclass(frozen=True)
class PolicyEvent:
    """A decision over a policy, and the env steps that it had trained on."""

    what: str
    env_steps: int


class PolicyProgress:
    """The progress of one policy. latest: the episodes of all policies."""

    def __init__(self, policy_id: int, latest: LatestEpisodes, stats_avg: int) -> None:
        self._policy_id = policy_id
        self._latest = latest
        self._stats_avg = stats_avg
        self._since = float("-inf")  # by time.monotonic(): episodes that began before are those of an earlier self
        self.env_steps = 0  # that its learner has taken
        self.train: dict[str, float] = {}  # the latest metrics of its learner
        self.last_event: PolicyEvent | None = None  # the last decision over its weights

    def note_order(self, copies: int | None, begins_anew: bool = False) -> None:
        """Something was decided over the policy. copies: the policy whose weights it takes over."""
        what = "begun anew" if begins_anew else "mutated" if copies is None else f"copied {copies}"
        self.last_event = PolicyEvent(what, self.env_steps)

    def begin_anew(self) -> None:
        """It has other weights: no episode that is under way counts, nor any before."""
        self._since = time.monotonic()

    @property
    def num_waited_for(self) -> int:
        """Actors that have yet to end an episode since the policy is what it is. Until then it has no score."""
        return self._latest.num_waited_for(self._since)

    @property
    def episodes(self) -> list[EndedEpisode]:
        """Returns its latest `stats_avg` or some more, see `LatestEpisodes`; empty while an actor is waited for."""
        return self._latest.of(self._policy_id, self._since)

    @property
    def has_enough_episodes(self) -> bool:
        """Returns whether there are enough for their mean to be reported."""
        return len(self.episodes) >= enough_episodes(self._stats_avg)

    def objective(self, name: str) -> float | None:
        """Mean of `objective_values`; None: too few episodes."""
        values = self.objective_values(name)
        return float(np.mean(values)) if values else None

    def objective_values(self, name: str) -> list[float]:
        """Returns the statistic `name` of each of its episodes, or the return where they lack it. Empty: too few.

        Episodes that lack the statistic of the default are judged by whether their match was won, where that is known.
        """
        episodes = self.episodes
        if len(episodes) < enough_episodes(self._stats_avg):
            return []
        if name == PopulationConfig.pbt_target_objective and not any(name in each.stats for each in episodes):
            won = [each.stats[WIN_RATE] for each in episodes if WIN_RATE in each.stats]
            if len(won) > 1:
                return won
        return [each.stats.get(name, each.episode_return) for each in episodes]

    def means(self) -> dict[str, Any]:
        """Returns the means of its latest episodes, and of its training."""
        return {**episode_means(self.episodes), **{f"train/{name}": value for name, value in self.train.items()}}


def episode_means(episodes: Collection[EndedEpisode]) -> dict[str, Any]:
    """Over finished episodes: return, steps, frames, stats."""
    if not episodes:
        return {"mean_return": None, "mean_episode_steps": None, "episodes_in_mean": 0}
    returns = [episode.episode_return for episode in episodes]
    means = {
        "mean_return": float(np.mean(returns)),
        "std_return": float(np.std(returns)),
        "min_return": float(np.min(returns)),
        "max_return": float(np.max(returns)),
        "mean_episode_steps": float(np.mean([episode.num_steps for episode in episodes])),
        "mean_episode_frames": float(np.mean([episode.num_frames for episode in episodes])),
        "episodes_in_mean": len(episodes),
    }
    for name in sorted({name for episode in episodes for name in episode.stats}):
        means[f"stats/{name}"] = float(np.mean([each.stats[name] for each in episodes if name in each.stats]))
    return means
