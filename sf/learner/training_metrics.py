"""Collects what training measures. Metrics stay tensors on the device until a report needs the numbers."""

from __future__ import annotations

import torch
from torch import Tensor

_OF_CHOICES = frozenset(
    {
        *("policy_loss", "entropy", "approx_kl", "ratio_mean", "clip_fraction", "effective_sample_size"),
        *("advantage_mean", "advantage_stddev"),
    }
)  # means over the samples with more than one possible action
_PARTS_OF_STEP = ("policy_loss", "value_loss", "entropy", "loss", "grad_norm")


class TrainingMetrics:
    """Collects metrics by name, 0-dim, of optimiser steps and of iterations, between two reports."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Tensor]] = []  # for the next report, in the order in which they were measured
        self._last_step: dict[str, Tensor] = {}

    def add_step(self, metrics: dict[str, Tensor]) -> None:
        self._last_step = metrics
        self._waiting.append(metrics)

    def add_iteration(self, metrics: dict[str, Tensor]) -> None:
        """Call this after `add_step` of its steps."""
        self._waiting.append(metrics)

    def mean_of_last(self, num_steps: int, name: str) -> float | None:
        """Returns the mean of a metric of the policy over the last steps of an iteration that has not been added, or
        None if no sample of theirs had a choice. Waits for the device.
        """
        steps = self._waiting[-num_steps:]
        values, weights = (torch.stack([step[key].float() for step in steps]) for key in (name, "num_choices"))
        has_choices = weights > 0
        if not has_choices.any():
            return None
        values, weights = values[has_choices], weights[has_choices]
        return float((values * weights).sum() / weights.sum())

    def not_finite(self) -> list[str]:
        """Returns the names of the parts of the last step that were not finite."""
        return [name for name in _PARTS_OF_STEP if not self._last_step[name].isfinite()]

    def pop(self) -> dict[str, float]:
        """Returns the means of what was measured since the last call; of `lag_max` the maximum.

        Numbers that are not finite are left out, and so is what steps without a sample say, but for `num_samples`, and
        what steps without a choice say of the policy. A name is missing where no other number was measured.
        """
        out: dict[str, float] = {}
        for name in sorted({name for metrics in self._waiting for name in metrics}):
            measured = [metrics for metrics in self._waiting if name in metrics]
            values = torch.stack([metrics[name].float() for metrics in measured]).cpu()
            counts = values.isfinite()
            needs = "num_choices" if name in _OF_CHOICES else "num_samples"
            if name not in ("num_samples", "num_choices") and needs in measured[0]:
                counts &= torch.stack([metrics[needs] for metrics in measured]).cpu() > 0
            values = values[counts]
            if len(values):
                out[name] = float(values.max() if name == "lag_max" else values.mean())
        self._waiting.clear()
        return out


class SkippedUpdates:
    """Counts updates that are skipped because their loss or gradients are not finite.

    It counts on the device: only reading a count waits for it.
    """

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
        """Returns the number of skipped updates of the run."""
        return int(self._total)

    @property
    def in_row(self) -> int:
        """Returns the number of skipped updates since the last one that was not."""
        return int(self._in_row)
