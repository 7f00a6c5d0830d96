"""The table of all tensors, which is shown before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sf.surgery.operated import Operated
from sf.surgery.operation import Change, Shape


def table(changes: Sequence[Change]) -> str:
    """Returns a line for each tensor, those that change first, and how many there are of each kind."""
    widest = max(len(change.name) for change in changes)
    shown = sorted(changes, key=lambda change: change.kind == "kept")
    lines = [f"{change.kind:8}{change.name:{widest}}  {_shapes(change)}" for change in shown]
    counts = Counter(change.kind for change in changes)
    return "\n".join([*lines, ", ".join(f"{number} {kind}" for kind, number in counts.items())])


def _shapes(change: Change) -> str:
    if change.kind == "copied":
        return f"{_shape(change.shape)} from {change.source}"
    if change.shape is None or change.old_shape in (None, change.shape):
        return _shape(change.shape if change.shape is not None else change.old_shape)
    return f"{_shape(change.old_shape)} -> {_shape(change.shape)}"


def _shape(shape: Shape | None) -> str:
    return "x".join(map(str, shape or ())) or "1"


def report(path: Path, operated: Operated) -> str:
    """Returns the table of a policy, and how exact its surgery is. path: of the checkpoint."""
    found, loss = operated.difference, operated.loss
    lines = [f"{path}:", table(operated.operation.changes)]
    if found.is_rounding and not operated.operation.removed:
        lines.append("On what it saw before, the policy does what it did before (up to rounding).")
    elif loss is None:
        lines.append(
            "The policy is not the same any more. How much is lost cannot be measured, since neither environment shows "
            "all that it saw."
        )
    else:
        lines.append(
            f"The policy is not the same any more. In {loss.num_decisions} decisions of today, its KL divergence from "
            f"the one before is {loss.kl:.3g} nats, and choices that are gone had a probability of {loss.dropped:.3g}."
        )
        if loss.value_stddev:
            lines.append(
                f"Values differ by {loss.value_error:.3g} (root mean square; their standard deviation is "
                f"{loss.value_stddev:.3g})."
            )
    return "\n".join(lines)
