"""What training measures between two reports. Metrics stay tensors on the device until a report needs the numbers."""

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
    """Metrics by name, 0-dim, of optimiser steps and of iterations."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Tensor]] = []  # for the next report, in the order in which they were measured
        self._last_step: dict[str, Tensor] = {}

    def add_step(self, metrics: dict[str, Tensor]) -> None:
        self._last_step = metrics
        self._waiting.append(metrics)

    def add_iteration(self, metrics: dict[str, Tensor]) -> None:
        """After its steps."""
        self._waiting.append(metrics)

    def mean_of_last(self, num_steps: int, name: str) -> float | None:
        """Over the samples with a choice of the last steps of an iteration that has not been added. name: of a metric
        of the policy. Waits for the device.

        None where they had none.
        """
        steps = self._waiting[-num_steps:]
        values, weights = (torch.stack([step[key].float() for step in steps]) for key in (name, "num_choices"))
        has_choices = weights > 0
        if not has_choices.any():
            return None
        values, weights = values[has_choices], weights[has_choices]
        return float((values * weights).sum() / weights.sum())

    def not_finite(self) -> list[str]:
        """Which parts of the last step were not finite."""
        return [name for name in _PARTS_OF_STEP if not self._last_step[name].isfinite()]

    def pop(self) -> dict[str, float]:
        """Means of what was measured since the last call; of `lag_max` the maximum.

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
