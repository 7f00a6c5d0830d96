"""How numbers and times are written for people, on the terminal and in reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = "-"
_LARGEST_WRITTEN_OUT = 1e15
_SMALLEST_WITH_TWO_DECIMALS = 0.095


def clock(seconds: float | None) -> str:
    """Hours, minutes and seconds: 1:02:05."""
    if seconds is None:
        return UNKNOWN
    whole = int(seconds)
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def number(value: float | None) -> str:
    """12,345.60, or 0.00012 where two decimals would leave less than two digits; an int as 12,345."""
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2g}" if 0 < abs(value) < _SMALLEST_WITH_TWO_DECIMALS else f"{value:,.2f}"


def count(value: float | None) -> str:
    """12,346: rounded, where a fraction means nothing."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def four_digits(value: float) -> str:
    """-0.1235, 12.35, 123,456: a measured value, with all digits before its point."""
    return f"{value:,.0f}" if 999.95 <= abs(value) < _LARGEST_WRITTEN_OUT else f"{value:.4g}"


def rate(per_second: float) -> str:
    """12,346; nothing where it is 0, which is not known: no iteration has ended."""
    return count(per_second or None)


def rounded(value: int) -> str:
    """1.2M, 12k or 123."""
    if value >= 1_000_000:
        return f"{value / 1e6:.1f}M"
    return f"{value / 1e3:.0f}k" if value >= 1_000 else str(value)


def up_to(time_limit: int | None) -> str:
    """Tells how long an episode takes, in decisions, behind a sentence on one that has not ended; "" if not known."""
    return "" if time_limit is None else f", and one takes up to {time_limit:,} steps"


def outcome(summary: Mapping[str, Any]) -> str:
    """Describes how a run went, in a sentence made from its summary."""
    returns = summary["mean_return"]
    num_episodes = summary.get("episodes")
    mean_return = f"mean return {number(returns)} over the last episodes"
    if returns is None and num_episodes:
        mean_return = f"no mean return yet ({num_episodes:,} finished episodes, and some actors have none)"
    elif returns is None:
        mean_return = "no finished episode"
    return (
        f"{summary['env_frames']:,} frames in {summary['seconds']:.0f} s "
        f"({summary['env_frames_per_second']:,.0f} frames/s), {mean_return}"
    )
