"""Updates that are skipped because their loss or gradients are not finite, and what follows from many in a row.

A single odd observation can cause one, and the next batch is another one. Many in a row come from the weights or from
an environment, and no later batch helps.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from sf.config import SupervisionConfig
from sf.processes.child import FinalError

MAX_ROLLBACKS = 3  # without a checkpoint in between: by default an eighth of the learning rate has not helped then


class SkippedUpdates:
    """Counts on the device. Only reading a count waits for it."""

    def __init__(self, device: torch.device, total: int = 0) -> None:
        self._total = torch.full((), total, dtype=torch.float64, device=device)
        self._in_row = torch.zeros((), device=device)

    def count(self, is_skipped: Tensor) -> None:
        """Count one update. is_skipped: 0-dim, 1 or 0."""
        self._total += is_skipped
        self._in_row += 1
        self._in_row *= is_skipped

    @property
    def total(self) -> int:
        """All skipped updates of the run."""
        return int(self._total)

    @property
    def in_row(self) -> int:
        """Skipped updates since the last one that was not."""
        return int(self._in_row)


class RollbackBudget:
    """Whether the run may go back to its last checkpoint once more."""

    def __init__(self, config: SupervisionConfig) -> None:
        self._config = config
        self._num_rollbacks = 0

    def is_due(self, num_in_row: int) -> bool:
        return num_in_row >= self._config.max_skipped_updates

    def spend(self, num_in_row: int, not_finite: Iterable[str], learning_rate: float) -> None:
        """Count a rollback. Raises FinalError where the run has to end instead.

        not_finite: names of the metrics that were not finite in the last update.
        """
        if self._config.on_divergence == "rollback" and self._num_rollbacks < MAX_ROLLBACKS:
            self._num_rollbacks += 1
            return
        tried = f" after {self._num_rollbacks} rollbacks without a checkpoint in between" if self._num_rollbacks else ""
        raise FinalError(
            f"training has diverged{tried}: {num_in_row} updates in a row had to be skipped (--max_skipped_updates), "
            f"since they were not finite ({', '.join(not_finite)}); try a lower --learning_rate (it is "
            f"{learning_rate:g}) or --max_grad_norm, and make sure that observations and rewards are finite: the same "
            "command goes on from the last checkpoint, which is whole"
        )

    def note_checkpoint(self) -> None:
        """Training has gone well from one checkpoint to the next."""
        self._num_rollbacks = 0
