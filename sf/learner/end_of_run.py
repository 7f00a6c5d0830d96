"""Where the run ends, and how much of it is done: schedules depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sf.counters import CounterRow


@dataclass(frozen=True)
class EndOfRun:
    """The end of the run, as one learner knows it.

    env_steps: of all policies together, at which the run ends; None: not by steps. seconds: the same in wall time.
    others: counters of the learners of the other policies. others_before: their env steps in earlier parts of the run.
    """

    env_steps: int | None
    seconds: float | None
    others: Sequence[CounterRow] = ()
    others_before: int = 0

    def share_done(self, env_steps: int, seconds: float) -> float:
        """From 0 to 1; 0 in a run without an end. env_steps: of this policy. seconds: of the run.

        Env steps decide where the run ends by them, even if it may end by the clock before. So a synchronous run is the
        same each time.
        """
        if self.env_steps is not None:
            of_others = self.others_before + sum(int(row.get("steps")) for row in self.others)
            return min(1.0, (env_steps + of_others) / self.env_steps)
        return 0.0 if self.seconds is None else min(1.0, seconds / self.seconds)
