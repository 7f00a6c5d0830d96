"""What looks at each record of a run as it is made, and may end it: `on_record` of `sf.train`, `--stop_at_return`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

OnRecord = Callable[[dict[str, Any]], object]
"""Called with a record, the dictionary that goes to metrics.jsonl. A truthy answer ends the run."""


class RecordHooks:
    """Functions, by name, that the parent calls with each record. It does nothing else until they return.

    stopped_by: the name of the first that asked the run to end, or raised. error: what it raised.
    """

    def __init__(self, hooks: Mapping[str, OnRecord]) -> None:
        self.stopped_by: str | None = None
        self.error: BaseException | None = None
        self._hooks = hooks

    def call(self, record: Mapping[str, Any]) -> None:
        """Raises nothing: a run saves before it hands on what a function of the user's raised."""
        for name, hook in self._hooks.items():
            try:
                asks_to_stop = bool(hook(dict(record)))  # a copy: others, in other threads too, have the record itself
            except BaseException as error:
                self.error = error
                asks_to_stop = True
            if asks_to_stop:
                self.stopped_by = name
                return

    def last_words(self) -> str:
        """Why the run ends, in a sentence."""
        if self.error is not None:
            return f"{self.stopped_by} raised {self.error!r}: the run saves and ends"
        return f"{self.stopped_by} asks the run to end"


def stop_at_return(threshold: float, stats_avg: int, num_policies: int, are_judged: Callable[[], bool]) -> OnRecord:
    """Ends the run when the mean return of every policy, over `stats_avg` episodes at least, is `threshold` or more.

    are_judged: whether the latest episodes of all policies may decide about them.
    """
    prefixes = [f"policy_{policy_id:02d}/" for policy_id in range(num_policies)] if num_policies > 1 else [""]

    def has_reached(record: Mapping[str, Any], prefix: str) -> bool:
        return record[f"{prefix}episodes_in_mean"] >= stats_avg and record[f"{prefix}mean_return"] >= threshold

    return lambda record: are_judged() and all(has_reached(record, prefix) for prefix in prefixes)
