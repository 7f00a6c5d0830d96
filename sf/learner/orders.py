"""The parent's decisions over a policy of a population, and how its learner carries them out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sf.learner.update import Updater
from sf.recovery import RecoveryMemory
from sf.storage import checkpoint


class Orders:
    """The orders to one learner, carried out one after the other.

    An order has `hyperparameters`, fields of LearnerConfig. Where it has a number at `copies`, the policy goes on with
    weights and moments of the policy with that number, and with the order's `weights_event`; where it has a path at
    `begins_from`, with those of that checkpoint.

    hyperparameters: those of the latest order that was carried out.
    """

    def __init__(
        self,
        orders: Connection,
        recoveries: Sequence[RecoveryMemory],
        hyperparameters: Mapping[str, float],
        say: Callable[[str], None],
    ) -> None:
        """recoveries: of all policies. hyperparameters: those that differ from the configuration at the start. say:
        tells the user.
        """
        self._say = say
        self.hyperparameters = hyperparameters
        self._orders = orders
        self._recoveries = recoveries
        self._waiting: list[dict[str, Any]] = []

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting) or self._orders.poll()

    def carry_out(self, updater: Updater) -> int | None:
        """Returns the `weights_event` of the weights that `updater` has copied; None where it has copied none.

        A copy waits until the other policy has put its weights into shared memory. Later orders wait behind it.
        """
        while self._orders.poll():
            self._waiting.append(json.loads(self._orders.recv_bytes()))
        weights_event = None
        while self._waiting:
            order = self._waiting[0]
            if order.get("begins_from") is not None:
                try:
                    updater.copy(checkpoint.load(Path(order["begins_from"])).tensors)
                except (OSError, ValueError) as error:
                    self._say(f"it cannot begin anew ({error}), so it goes on with the weights that it has")
                weights_event = order["weights_event"]
            elif order["copies"] is not None:
                remembered = self._recoveries[order["copies"]].read()
                if remembered is None:
                    break
                updater.copy(remembered.tensors)
                weights_event = order["weights_event"]
            self.hyperparameters = order["hyperparameters"]
            updater.set_hyperparameters(self.hyperparameters)
            self._waiting.pop(0)
        return weights_event
