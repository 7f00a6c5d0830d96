"""Gets the actions of a group from policy workers, who are asked for the row that is under way."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sf.envs import StepResult
from sf.rollout.assignment import Assignment
from sf.shared.requests import WorkerChannel


class Actions(Protocol):
    """Has the actions of one group written into its rows."""

    def begin_rollout(self, slots: np.ndarray) -> None:
        """Called when the group begins to fill `slots` [N]."""
        ...

    def ask(self, row: int) -> None:
        """Ask for the actions of this row."""
        ...

    def have_come(self) -> bool:
        """Called when everybody who was asked has answered. Returns whether the actions are in the row; else something
        more was asked."""
        ...

    def after_step(self, result: StepResult) -> None:
        """Called when the environments have taken them."""
        ...


class AskedActions:
    """Asks the policies and players that play the group for their actions."""

    def __init__(self, channel: WorkerChannel, group_idx: int, assignment: Assignment) -> None:
        self._channel, self._group_idx, self._assignment = channel, group_idx, assignment

    def begin_rollout(self, slots: np.ndarray) -> None:
        self._channel.tables["slots"][self._group_idx] = slots

    def ask(self, row: int) -> None:
        self._channel.tables["policy"][self._group_idx] = self._assignment.policy
        self._channel.ask(self._group_idx, row, self._assignment.players)

    def have_come(self) -> bool:
        return True

    def after_step(self, result: StepResult) -> None:
        pass
