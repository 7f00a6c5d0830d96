"""A sentence where the data says little of the policy that is trained, because other versions acted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sf.config import Config

FEWEST = 0.7  # a share of the samples; runs that learned well had 0.9 and more
_MOST_MASKED = 0.5  # a share of the samples
_FOR_S = 60.0
_OLD = 1.5  # iterations; one is as it should be


class StaleData:
    """Watches one learner: the share of its samples that are too old to be trained on, and the effective sample size of
    the others, (sum w)^2 / sum w^2 of the importance weights w, as a share of them (Kong 1992)."""

    def __init__(self, config: Config, has_auto_sizes: bool) -> None:
        """config: of the run. has_auto_sizes: `sf.config.auto_sizes` has chosen its rollout, or its batch_size."""
        self._steps_per_iteration = config.learner.steps_per_iteration
        self._max_policy_lag = config.sampler.max_policy_lag
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
        if not {"effective_sample_size", "masked_share"} & metrics.keys():
            return None
        sentence = self._sentence(metrics)
        if sentence is None:
            self._low_since = None
            return None
        if self._low_since is None:
            self._low_since = now
        if self._was_said or now - self._low_since < _FOR_S:
            return None
        self._was_said = True
        return sentence

    def _sentence(self, metrics: Mapping[str, Any]) -> str | None:
        masked, worth = metrics.get("masked_share", 0.0), metrics.get("effective_sample_size", 1.0)
        if masked > _MOST_MASKED:
            remedies = " or ".join([*self._of_sampler, f"a --max_policy_lag above {self._max_policy_lag}"])
            return f"{masked:.0%} of the data of the last minute was too old to be trained on: try {remedies}"
        if worth >= FEWEST:
            return None
        what = f"the data has been worth {worth:.0%} of its samples for a minute (effective sample size)"
        iterations = metrics.get("lag_mean", 0.0) / self._steps_per_iteration
        if iterations > _OLD:
            return f"{what}, and is {iterations:.1f} iterations old: try {' or '.join(self._of_sampler)}"
        return f"{what}: try {' or '.join(self._of_learner)}"
