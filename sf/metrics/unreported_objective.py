"""Whether episodes report the statistic that policies are ranked by."""

from __future__ import annotations

from collections.abc import Sequence

from sf.config import PopulationConfig
from sf.metrics.policy_progress import PolicyProgress


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
