"""Evaluations whose episodes have no end: a sentence, where a person would wait for ever without a word."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sf.metrics.readable import up_to

_PATIENCE_S = 60.0
_OF_ONE_AGENT = (
    "give them one, in sf-eval by --override "
    """'env_wrappers={"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 1000}}'"""
)
OF_SEVERAL_AGENTS = "give the environment a limit of steps, by its env_kwargs or a wrapper"


@dataclass
class EndlessWatch:
    """The on_progress of evaluations. say: is told once, when no episode has ended for a minute. advice: what to do if
    they have no end. time_limit: returns the most decisions of an episode, None if not known; called for the sentence.
    """

    say: Callable[[str], None]
    advice: str = _OF_ONE_AGENT
    time_limit: Callable[[], int | None] = lambda: None
    _began_at: float | None = None
    _has_said: bool = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done > 0 or self._began_at is None:
            self._began_at = now
        if done == 0 and now - self._began_at >= _PATIENCE_S and not self._has_said:
            self._has_said = True
            limit = self.time_limit()
            what_to_do = f"if they have no end, stop this, and {self.advice}" if limit is None else "wait, or stop this"
            self.say(f"no episode has ended in {_PATIENCE_S:.0f} s{up_to(limit)}: {what_to_do}")
