"""Advice during a run: when the first update is due, an objective that no episode reports, and stale data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sf.config import Config, PopulationConfig
from sf.metrics.policy_progress import PolicyProgress
from sf.metrics.readable import up_to

_SLOW_S = 60.0  # until the first update
FEWEST = 0.7  # a share of the samples; runs that learned well had 0.9 and more
_MOST_MASKED = 0.5  # a share of the samples
_FOR_S = 60.0
_OLD = 1.5  # iterations; one is as it should be


def env_start(num_ready: int, num_envs: int, seconds: float) -> str:
    """Tells how far the start of environments is. seconds: since it began."""
    what = f"environments {num_ready:,} of {num_envs:,}"
    if num_ready == 0:
        return what
    return f"{what}, about {_rounded(seconds * (num_envs - num_ready) / num_ready)}"


def slow_env_start(num_ready: int, num_envs: int, seconds: float, num_per_worker: int) -> str | None:
    """Returns a sentence where the start of environments takes more than a minute, once that can be told."""
    if num_ready in (0, num_envs) or (total := seconds * num_envs / num_ready) < _SLOW_S:
        return None
    fewer = max(1, num_per_worker // 4)
    faster = f"; --num_envs_per_worker {fewer} is a faster start" if fewer < num_per_worker else ""
    return (
        f"the {num_envs:,} environments take about {_rounded(total)} to start, and training begins with those that are "
        f"ready{faster}"
    )


def first_update(num_steps: int, sampled: int, steps_per_second: float) -> str:
    """One sentence. num_steps: that come before it; sampled: of these, so far. steps_per_second: 0 if not known."""
    what = f"first update after {num_steps:,} steps"
    if sampled >= num_steps:
        return f"{num_steps:,} steps are collected, and the first update is under way"
    if steps_per_second <= 0:
        return what
    seconds = (num_steps - sampled) / steps_per_second
    sooner = (
        "; lower --rollout and --num_batches_per_epoch for an earlier one"
        if num_steps / steps_per_second > _SLOW_S
        else ""
    )
    return f"{what}, in about {_rounded(seconds)} at this rate{sooner}"


def _rounded(seconds: float) -> str:
    return f"{max(1.0, seconds):.0f} s" if seconds < 2 * _SLOW_S else f"{seconds / 60:.0f} min"


def no_episode(num_steps: int, time_limit: int | None) -> str:
    """Returns what a run is told that ends without a finished episode.

    num_steps: that each environment has had. time_limit: decisions of an episode at most; None: not known.
    """
    remedy = "train longer"
    if time_limit is None:
        remedy += (
            ", or, if episodes have no end, give them one by "
            """--env_wrappers '{"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 1000}}'"""
        )
    return f"no episode ended in about {num_steps:,} steps of each environment{up_to(time_limit)}: {remedy}"


class UnreportedObjective:
    """Looks at the first episodes of a run for the statistic `--pbt_target_objective`.

    For the default nothing is said: many environments have no `true_objective`, and are meant to be ranked without.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_settled = name == PopulationConfig.pbt_target_objective

    def see(self, policies: Sequence[PolicyProgress]) -> str | None:
        """Returns a sentence, once, where a policy has episodes enough to be ranked and none reports the statistic."""
        if self._is_settled:
            return None
        reported = {name for policy in policies for episode in policy.episodes for name in episode.stats}
        self._is_settled = self._name in reported or any(policy.has_enough_episodes for policy in policies)
        if self._name in reported or not self._is_settled:
            return None
        names = f"they report {', '.join(sorted(reported))}" if reported else "they report no statistics"
        return (
            f"pbt_target_objective is {self._name!r}, which no episode has reported, so policies are ranked by their "
            f"return: {names}"
        )


class StaleData:
    """Watches one learner: the share of its samples that are too old to be trained on, and the effective sample size of
    the others, (sum w)^2 / sum w^2 of the importance weights w, as a share of them (Kong 1992)."""

    def __init__(self, config: Config, has_auto_sizes: bool) -> None:
        """config: of the run. has_auto_sizes: `sf.config.auto_values` has chosen its rollout, or its batch_size."""
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
        """Takes what was just measured, at `now` in seconds. Returns the sentence, once, after a minute of low ones."""
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
