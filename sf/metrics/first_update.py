"""When the first update of the learner is due, which the display says until it has come."""

from __future__ import annotations

_SLOW_S = 60.0


def steps_before_update(slots_needed: int, num_actors: int, rollout: int) -> int:
    """Env steps that are sampled before the learners have `slots_needed` trajectories of `rollout` steps.

    All actors finish their trajectories at about the same time.
    """
    return -(-slots_needed // num_actors) * num_actors * rollout


def first_update(num_steps: int, sampled: int, steps_per_second: float) -> str:
    """One sentence. num_steps: that come before it; sampled: of these, so far. steps_per_second: 0 if not known."""
    what = f"first update after {num_steps:,} steps"
    if sampled >= num_steps:
        return f"{what}, which are sampled: the learner trains"
    if steps_per_second <= 0:
        return what
    seconds = (num_steps - sampled) / steps_per_second
    sooner = (
        "; lower --rollout and --num_batches_per_epoch for an earlier one"
        if num_steps / steps_per_second > _SLOW_S
        else ""
    )
    return f"{what}, in about {_rounded(seconds)} at this rate{sooner}"


def _rounded(seconds: float) -> str:
    return f"{max(1.0, seconds):.0f} s" if seconds < 2 * _SLOW_S else f"{seconds / 60:.0f} min"
