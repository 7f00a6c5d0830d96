"""Rolls a policy back after many updates in a row that were skipped since they were not finite.

A single odd observation can cause one, and the next batch is another one. Many in a row come from the weights or from
an environment, and no later batch helps.
"""

from __future__ import annotations

from collections.abc import Iterable

from sf.config import SupervisionConfig
from sf.learner.args import LearnerArgs
from sf.learner.checkpoints.content import last_checkpoint
from sf.learner.checkpoints.saver import Saver
from sf.learner.state import LearnerState
from sf.system.processes.child import FinalError
from sf.system.processes.reports import Reports, RolledBack, Trained

MAX_ROLLBACKS = 3  # without a checkpoint in between: by default an eighth of the learning rate has not helped then


class RollbackBudget:
    """Decides whether the run may go back to its last checkpoint once more."""

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
        """Begin to count anew: training has gone well from one checkpoint to the next."""
        self._num_rollbacks = 0


class Rollback:
    """Returns a learner that has diverged to its last checkpoint, or to a new network before the first."""

    def __init__(self, args: LearnerArgs, state: LearnerState, saver: Saver, reports: Reports) -> None:
        self._args, self._state, self._saver, self._reports = args, state, saver, reports
        self._budget = RollbackBudget(args.config.supervision)
        self._saved_version = saver.saved_version  # at the last rollback

    @property
    def is_due(self) -> bool:
        """Ask once an iteration, after the last publication has waited for the device in any case."""
        return self._budget.is_due(self._state.updater.skipped.in_row)

    def roll_back(self) -> None:
        """Go back. Raises FinalError where the run has to end instead.

        The state for a successor is no way back: it is seconds old, and training from it diverges again.
        """
        args, state, diverged = self._args, self._state, self._state.updater
        num_skipped, names = diverged.skipped.in_row, diverged.metrics.not_finite()
        self._reports.send(Trained(state.env_steps, diverged.pop_metrics()))  # for the summary, if that ends
        if self._saver.saved_version != self._saved_version:
            self._budget.note_checkpoint()
            self._saved_version = self._saver.saved_version
        if args.place.is_first:  # the others end with it
            self._budget.spend(num_skipped, names, diverged.learning_rate)
        saved = last_checkpoint(args, state.ranks)
        lost_steps = state.trained_steps - saved.trained_steps if args.place.is_first else 0  # those of all ranks
        state.go_back_to(saved)
        state.updater.take_over(diverged, args.config.supervision.rollback_lr_factor)
        text = (
            f"{num_skipped} updates in a row were not finite ({', '.join(names)}), so it goes back to "
            f"{saved.description}, with learning rate {state.updater.learning_rate:g}"
        )
        self._reports.send(RolledBack(text, lost_steps, state.weights_event))
        self._saver.weights_are_rolled_back()
