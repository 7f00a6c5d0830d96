"""The latest episodes of every actor: a sample in which short episodes are no likelier than long ones.

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
from collections import deque
from collections.abc import Collection, Mapping
from typing import NamedTuple

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
