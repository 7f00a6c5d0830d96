"""A sentence where a learner trains on data that says little of its policy, because another version acted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FEWEST = 0.7  # a share of the samples; runs that learned well had 0.9 and more
_FOR_S = 60.0


class StaleData:
    """Watches the effective sample size of one learner: (sum w)^2 / sum w^2 of the importance weights w, as a share of
    the samples (Kong 1992)."""

    def __init__(self, steps_per_iteration: int) -> None:
        """steps_per_iteration: optimiser steps on the data that is taken at once."""
        self._steps_per_iteration = steps_per_iteration
        self._low_since: float | None = None
        self._was_said = False

    def see(self, now: float, metrics: Mapping[str, Any]) -> str | None:
        """What was just measured, at `now` in seconds. Returns the sentence, once, after a minute of low ones."""
        share = metrics.get("effective_sample_size")
        if share is None or share >= FEWEST:
            self._low_since = None
            return None
        if self._low_since is None:
            self._low_since = now
        if self._was_said or now - self._low_since < _FOR_S:
            return None
        self._was_said = True
        iterations = metrics.get("lag_mean", 0.0) / self._steps_per_iteration
        what = f"the data has been worth {share:.0%} of its samples for a minute (effective sample size)"
        if iterations > 1:
            return (
                f"{what}, and is {iterations:.1f} iterations old: --rollout auto --batch_size auto, or fewer "
                "--num_envs_per_worker"
            )
        return f"{what}: lower --learning_rate or --num_epochs, or --lr_schedule kl_adaptive"
