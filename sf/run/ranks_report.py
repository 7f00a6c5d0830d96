"""What a rank tells the others of itself, and what the first makes of it: one record, one display."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from multiprocessing import connection
from typing import Any

from sf.metrics.bottleneck import RanksLoad
from sf.metrics.progress import Outlook
from sf.ranks.board import Board
from sf.ranks.place import FAILURE, FINAL_FAILURE, USER_ERROR, Place
from sf.ranks.records import merged
from sf.run.children.verdict import ChildError
from sf.system.arrays import SharedArrays
from sf.system.processes.stopping import Signals

_OWN_SIGNAL_WITHIN_S = 5.0
_SUMMARIES_WITHIN_S = 5.0


class RanksReport:
    """Between the parent of a rank and the board of all. has_signalled_rank: a signal has asked one to end."""

    def __init__(
        self, place: Place, board: Board, hangs_after_s: float = math.inf, shaping: SharedArrays | None = None
    ) -> None:
        """hangs_after_s: of learners that all wait for each other. shaping: `weights` [P, K] of shaped rewards by
        policy, which the parent of the first rank may change."""
        self._place = place
        self._board = board
        self._shaping = shaping
        self._hangs_after_s = hangs_after_s
        self._held_up: dict[int, tuple[object, float]] = {}  # by policy: what was seen of all, and since when
        self.has_signalled_rank = False
        self._wait_shares: dict[int, Sequence[float]] = {}  # by policy: see `note_waits`

    def why_lost(self, learners: Sequence[tuple[bool, float]]) -> str | None:
        """Why the ranks cannot go on, in a sentence; None where they can.

        learners: of each policy, whether others hold its learner up, and its heartbeat. Where that is so on all ranks,
        and stays so, one of them hangs, which says of itself that it waits.
        """
        if self._place.is_alone:
            return None
        self._board.post(learners=learners)
        now, lines = time.monotonic(), self._board.lines()
        for policy_id, own in enumerate(learners):
            of_others = (tuple(line["learners"][policy_id]) for line in lines.values() if "learners" in line)
            of_all = [tuple(own), *of_others]
            are_held_up = len(of_all) == self._place.size and all(is_held_up for is_held_up, _ in of_all)
            if not are_held_up or self._held_up.get(policy_id, (None, 0.0))[0] != of_all:
                self._held_up[policy_id] = of_all, now
            elif now - self._held_up[policy_id][1] > self._hangs_after_s:
                return (
                    f"the learners of all ranks wait for each other for {self._hangs_after_s:g} s "
                    "(--worker_timeout_s), so one of them hangs"
                )
        return self._board.silence()

    def note_failure(self, failure: Exception | None) -> None:
        """The others hear of it before this rank has ended: they fail, too, where its learner has gone."""
        if failure is not None:
            self._board.post(status=status_after(failure))

    def note_waits(self, policy_id: int, wait_shares: Sequence[float]) -> None:
        """wait_shares: of each rank, for how much of its time the learner of this policy waits for others."""
        self._wait_shares[policy_id] = wait_shares

    def tell(self, record: Mapping[str, Any], outlook: Outlook) -> None:
        """Give the other ranks the last record of this one."""
        if self._place.is_alone:
            return
        sampled = outlook.sampled_frames_per_second
        self._board.post(record=record, bottleneck=outlook.bottleneck, sampled_frames_per_second=sampled)
        self._share_shaping()

    def of_all(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record of the run. record: of this rank."""
        if self._place.is_alone or not self._place.is_first:
            return record
        others = [line["record"] for line in self._board.lines().values() if "record" in line]
        record = merged([record, *others])
        load = self._load()
        if load is not None:
            record |= {
                "ranks/slowest": load.slowest,
                "ranks/wait_share": load.wait_share,
                "ranks/slowest_wait_share": load.slowest_wait_share,
            }
        return record

    def summary_of_all(self, summary: dict[str, Any], has_failed: bool) -> dict[str, Any]:
        """The summary of the run. summary: of this rank. The first waits for the others', unless the run has failed."""
        self._board.post(summary=summary)
        if self._place.is_alone or not self._place.is_first:
            return summary
        if not has_failed:
            self._board.wait_for_all("summary", _SUMMARIES_WITHIN_S)
        return merged([summary, *(line["summary"] for line in self._board.lines().values() if "summary" in line)])

    def outlook_of_all(self, outlook: Outlook) -> Outlook:
        """outlook: of this rank."""
        if self._place.is_alone or not self._place.is_first:
            return outlook
        others = (line.get("sampled_frames_per_second", 0.0) for line in self._board.lines().values())
        load = outlook.load and dataclasses.replace(outlook.load, ranks=self._load())
        sampled = outlook.sampled_frames_per_second + sum(others)
        return dataclasses.replace(outlook, load=load, sampled_frames_per_second=sampled)

    def wait_for_own_signal(self, signals: Signals) -> None:
        """This rank ends because another one was asked to.

        torchrun asks all where a machine comes or goes, but not all at the same moment. A rank that ended by itself
        meanwhile would have done its part, and would not be started again.
        """
        connection.wait([signals.wakeup], _OWN_SIGNAL_WITHIN_S)

    def _share_shaping(self) -> None:
        """Population-based training goes on at the first rank."""
        if self._shaping is None:
            return
        if self._place.is_first:
            self._board.post(shaping=self._shaping["weights"].tolist())
        elif "shaping" in self._board.lines().get(0, {}):
            self._shaping["weights"][:] = self._board.lines()[0]["shaping"]

    def _load(self) -> RanksLoad | None:
        """Who waits for whom; None where that is not known yet."""
        if not self._wait_shares:
            return None
        of_policies = list(self._wait_shares.values())
        waits = [sum(shares) / len(shares) for shares in zip(*of_policies, strict=True)]
        slowest = min(range(self._place.size), key=waits.__getitem__)
        others = [share for rank, share in enumerate(waits) if rank != slowest]
        return RanksLoad(
            slowest=slowest,
            host=self._board.host(slowest),
            wait_share=sum(others) / len(others),
            slowest_wait_share=waits[slowest],
            bottleneck=self._board.lines().get(slowest, {}).get("bottleneck", ""),
        )


def status_after(error: Exception) -> int:
    """With which a rank ends that this error has ended."""
    if isinstance(error, ValueError):
        return USER_ERROR
    return FINAL_FAILURE if isinstance(error, ChildError) and error.is_final else FAILURE
