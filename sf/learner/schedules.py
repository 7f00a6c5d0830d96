"""Learning-rate schedules: pure functions from where training is to the next learning rate.

The only state is the current rate, which lies in the optimiser and so in its checkpoint: resuming is exact.
"""

from __future__ import annotations

KL_ADAPTIVE_FACTOR = 1.5


def linear(initial: float, env_steps: int, total_env_steps: int) -> float:
    """From `initial` at step 0 down to 0 at `total_env_steps`, and 0 from there on."""
    return initial * max(0.0, 1.0 - env_steps / total_env_steps)


def kl_adaptive(current: float, kl: float, threshold: float, minimum: float, maximum: float) -> float:
    """The next rate after an update that moved the policy by `kl` (nats) away from the behaviour policy.

    Divided by 1.5 where the update moved more than twice the threshold, multiplied by 1.5 where less than half of it,
    within [minimum, maximum]. The band between keeps the rate from oscillating (Schulman et al. 2017, section 4,
    adapts its penalty by the same rule).
    """
    if kl > 2.0 * threshold:
        return max(current / KL_ADAPTIVE_FACTOR, minimum)
    if kl < 0.5 * threshold:
        return min(current * KL_ADAPTIVE_FACTOR, maximum)
    return current
