"""Learning-rate schedules: pure functions to the next learning rate.

The only state is the present rate, which the learner keeps in its checkpoint: resuming is exact.
"""

from __future__ import annotations

KL_ADAPTIVE_FACTOR = 1.5


def linear(initial: float, env_steps: int, total_env_steps: int) -> float:
    """From `initial` at step 0 down to 0 at `total_env_steps`, and 0 from there on."""
    return initial * max(0.0, 1.0 - env_steps / total_env_steps)


def kl_adaptive(rate: float, kl: float, threshold: float, minimum: float, maximum: float) -> float:
    """The rate after an iteration that moved the policy by `kl` nats.

    Divided by 1.5 where that is above twice the threshold, multiplied by 1.5 where it is below half of it,
    within [minimum, maximum]; the band between keeps the rate from oscillating. Schulman et al. 2017, section
    4, adapt their penalty by the same rule. A kl that is NaN leaves the rate as it is.
    """
    if kl > 2.0 * threshold:
        return max(rate / KL_ADAPTIVE_FACTOR, minimum)
    if kl < 0.5 * threshold:
        return min(rate * KL_ADAPTIVE_FACTOR, maximum)
    return rate
