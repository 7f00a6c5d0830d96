"""Carries out the parent's decisions over a policy of a population, on all ranks that train it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sf.learner.args import LearnerArgs
from sf.learner.checkpoints.saver import Saver
from sf.learner.state import LearnerState
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.system.messages import say


class Orders:
    """Carries out the orders to one learner, one after the other. Those to the first rank are for all.

    An order has `hyperparameters`, fields of LearnerConfig. Where it has a number at `copies`, the policy goes on with
    weights and moments of the policy with that number, and with the order's `weights_event`; where it has a path at
    `begins_from`, with those of that checkpoint.
    """

    def __init__(self, args: LearnerArgs, state: LearnerState, saver: Saver) -> None:
        self._state, self._saver = state, saver
        self._orders, self._recoveries = args.orders, args.recoveries
        self._waiting: list[dict[str, Any]] = []

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting) or self._orders.poll()

    def carry_out(self) -> bool:
        """Carry out the orders that have come to the first rank. Returns whether the policy has other weights now."""
        ranks = self._state.ranks
        weights_event = self._carry_out_own() if ranks.rank == 0 else None
        if ranks.size > 1:
            weights_event = self._follow_the_first(weights_event)
        if weights_event is None:
            return False
        self._state.weights_event = weights_event
        self._saver.weights_are_replaced()
        return True

    def _carry_out_own(self) -> int | None:
        """Returns the `weights_event` of the weights that were copied; None if none were.

        A copy waits until the other policy has put its weights into shared memory. Later orders wait behind it.
        """
        updater = self._state.updater
        while self._orders.poll():
            self._waiting.append(json.loads(self._orders.recv_bytes()))
        weights_event = None
        while self._waiting:
            order = self._waiting[0]
            if order.get("begins_from") is not None:
                try:
                    updater.copy(checkpoint.load(Path(order["begins_from"])).tensors)
                except (OSError, ValueError) as error:
                    say(f"it cannot load the weights to start again from ({error}), so it keeps its current ones")
                weights_event = order["weights_event"]
            elif order["copies"] is not None:
                remembered = self._recoveries[order["copies"]].read()
                if remembered is None:
                    break
                updater.copy(remembered.tensors)
                weights_event = order["weights_event"]
            self._state.hyperparameters = order["hyperparameters"]
            updater.set_hyperparameters(order["hyperparameters"])
            self._waiting.pop(0)
        return weights_event

    def _follow_the_first(self, weights_event: int | None) -> int | None:
        """Copy the hyperparameters of the first rank and, if it has other weights, these. Returns their event."""
        ranks, updater = self._state.ranks, self._state.updater
        tensors = updater.tensors() if weights_event is not None else {}
        decided = {"weights_event": weights_event, "hyperparameters": dict(self._state.hyperparameters)}
        data = ranks.share(checkpoint.encode(Checkpoint(tensors, decided)) if ranks.rank == 0 else b"")
        if ranks.rank == 0:
            return weights_event
        saved = checkpoint.decode(data)
        if saved.state["weights_event"] is not None:
            updater.copy(saved.tensors)
        self._state.hyperparameters = saved.state["hyperparameters"]
        updater.set_hyperparameters(self._state.hyperparameters)
        return saved.state["weights_event"]
