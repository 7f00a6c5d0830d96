"""How long an iteration takes, and how much of the present one is left."""

from __future__ import annotations

from sf.config import LearnerConfig

_LONG_S = 30.0


class Pace:
    """Measures the optimiser steps of iterations; `now` is a time in seconds, from any clock."""

    def __init__(self, config: LearnerConfig) -> None:
        self._config = config
        self._num_steps = config.steps_per_iteration
        self._num_done = 0  # of the present iteration
        self._has_warned = False
        self._begun_at = self._last_at = 0.0
        self._first_s = 0.0  # until the end of the first step: includes the pass before it, and what has to start up
        self._step_s: float | None = None  # the latest one

    def begin(self, now: float) -> None:
        """An iteration begins."""
        self._begun_at = self._last_at = now
        self._num_done = 0

    def step(self, now: float) -> str | None:
        """A step is done. The second one tells how long an iteration takes, as it no longer has to start things up.

        Returns a sentence where that is long and was not told yet.
        """
        self._num_done += 1
        self._step_s, self._last_at = now - self._last_at, now
        if self._num_done == 1:
            self._first_s = now - self._begun_at
        if self._num_done != 2:
            return None
        return self.warning(self._first_s + (self._num_steps - 1) * self._step_s)

    def end(self, now: float) -> str | None:
        """The iteration is done. Returns a sentence as `step` does: on a GPU steps are queued, and show no time."""
        if self._num_done != self._num_steps:
            return None
        return self.warning(now - self._begun_at)

    @property
    def seconds_left(self) -> float:
        """Until the end of the present iteration; 0 while that is not known."""
        return 0.0 if self._step_s is None else (self._num_steps - self._num_done) * self._step_s

    def warning(self, iteration_s: float) -> str | None:
        """Returns a sentence where an iteration of this many seconds is long, and was not told yet."""
        if self._has_warned or iteration_s <= _LONG_S:
            return None
        self._has_warned = True
        flags = [name for name in ("num_epochs", "num_batches_per_epoch") if getattr(self._config, name) > 1]
        choice = " or ".join(f"--{name}" for name in (*flags, "batch_size"))
        minibatches = f"{self._num_steps} minibatch{'es' * (self._num_steps > 1)}"
        return (
            f"an iteration takes about {iteration_s:.0f} s ({minibatches} of {iteration_s / self._num_steps:.2g} s), "
            f"and the sampler waits meanwhile: for a shorter one, lower {choice}"
        )
