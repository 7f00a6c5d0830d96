"""The range of a flag that is a number."""

from __future__ import annotations

from sf.envs.errors import UsageError


def require_range(
    flags: object,
    *names: str,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> None:
    """Raise UsageError where one of these fields of `flags` is out of its range. `auto` and None are in every range."""
    bounds = {"at least": least, "above": above, "at most": most, "below": below}
    allowed = " and ".join(f"{words} {bound}" for words, bound in bounds.items() if bound is not None)
    if least is not None and most is not None:
        allowed = f"from {least} to {most}"
    for name in names:
        value = getattr(flags, name)
        if value is None or value == "auto":
            continue
        is_too_low = (least is not None and value < least) or (above is not None and value <= above)
        is_too_high = (most is not None and value > most) or (below is not None and value >= below)
        if is_too_low or is_too_high:
            raise UsageError(f"{name} is {value}: {allowed}")
