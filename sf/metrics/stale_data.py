"""A sentence where a learner trains on data that says little of its policy, because another version acted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sf.config import Config

FEWEST = 0.7  # a share of the samples; runs that learned well had 0.9 and more
_FOR_S = 60.0
_OLD = 1.5  # iterations; one is as it should be


class StaleData:
    """Watches the effective sample size of one learner: (sum w)^2 / sum w^2 of the importance weights w, as a share of
    the samples (Kong 1992)."""

    def __init__(self, config: Config, has_auto_sizes: bool) -> None:
        """config: of the run. has_auto_sizes: `sf.config.auto_sizes` has chosen its rollout, or its batch_size."""
        self._steps_per_iteration = config.learner.steps_per_iteration
        self._of_sampler = ["fewer --num_envs_per_worker"]
        if not has_auto_sizes:
            self._of_sampler.insert(0, "--rollout auto --batch_size auto")
        self._of_learner = ["a lower --learning_rate"]
        if config.learner.num_epochs > 1:
            self._of_learner.append("fewer --num_epochs")
        if config.learner.lr_schedule != "kl_adaptive" and not config.population.with_pbt:
            self._of_learner.append("--lr_schedule kl_adaptive")
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
        what = f"the data has been worth {share:.0%} of its samples for a minute (effective sample size)"
        iterations = metrics.get("lag_mean", 0.0) / self._steps_per_iteration
        if iterations > _OLD:
            return f"{what}, and is {iterations:.1f} iterations old: try {' or '.join(self._of_sampler)}"
        return f"{what}: try {' or '.join(self._of_learner)}"
