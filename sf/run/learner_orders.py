"""How what the parent decides reaches the learners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sf.metrics.progress import Progress
from sf.run.children.roles.links import Links


class LearnerOrders:
    """Sends orders to the learners that live, and holds what the next ones start with.

    links: the pipes to the children. hyperparameters: returns those of the learner of a policy that differ from the
    configuration. The controllers set it, and the starter reads it at each start.
    """

    def __init__(self, progress: Progress) -> None:
        self.links = Links()
        self.hyperparameters: Callable[[int], Mapping[str, float]] = lambda policy_id: {}
        self._progress = progress

    def order(self, policy_id: int, **order: Any) -> None:
        """Note an order where the progress is watched, and send it to the learner of the policy."""
        self._progress.policies[policy_id].note_order(order["copies"], begins_anew="begins_from" in order)
        self.links.order(policy_id, **order)
