"""The values of flags that are auto: the sizes of an iteration, and the schedule of the learning rate.

`rollout` and `batch_size` follow the number of actors. Slots hold one trajectory of every actor. Where an iteration is
as large as that, or has several such rounds, its data is at most one iteration old: see docs/protocols.md. So many
actors make shorter trajectories, and from `SHORTEST` on larger minibatches. With few actors a minibatch has about
`SMALLEST` samples, or fewer where an iteration of so many minibatches has `ITERATION` already.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from sf.envs.field_types import require

if TYPE_CHECKING:
    from sf.config.config import Config

LONGEST, SHORTEST = 64, 16  # steps of a trajectory
SMALLEST = 256  # samples of a minibatch, give or take what makes whole rounds
ITERATION = 2048  # samples
_HIGHEST = 2.0  # of the learning rate
_KL_THRESHOLD = 0.008  # nats, of one action
_FALLS_WITH = 8192  # samples of an iteration at most, where the rate falls to 0: see benchmarks/learning_tried.md


def with_sizes(config: Config, num_actors: int, has_memory: bool, num_together: int = 1) -> Config:
    """The configuration with numbers for both.

    num_actors: those of one policy. has_memory: the network has a recurrent state. num_together: trajectories of which
    a minibatch has all or none. Raises ValueError for a batch_size that no trajectory divides, or not so many.
    """
    rollout, batch_size = config.sampler.rollout, config.learner.batch_size
    num_batches = config.learner.num_batches_per_epoch
    if rollout == "auto":
        rollout = LONGEST if has_memory else _rollout(num_batches, batch_size, num_actors)
        if batch_size != "auto":
            rollout = _divisor(batch_size, rollout)
    if batch_size == "auto":
        slots = _slots_per_batch(num_batches, rollout, num_actors, config.sampler.async_rl)
        batch_size = rollout * num_together * math.ceil(slots / num_together)
    else:
        of_env = rollout * num_together
        require(
            batch_size % of_env == 0 or num_together == 1,
            f"batch_size is {batch_size}: the critic sees the {num_together} agents of an environment at once, so it "
            f"must be a multiple of their samples (rollout x agents, {of_env}), for example "
            f"{of_env * max(1, round(batch_size / of_env))}",
        )
    return config.replace(rollout=rollout, batch_size=batch_size)


def _rollout(num_batches: int, batch_size: int | Literal["auto"], num_actors: int) -> int:
    """The largest power of two between the bounds with which all actors fill an iteration at most."""
    samples = num_batches * (_smallest(num_batches) if batch_size == "auto" else batch_size)
    return min(LONGEST, max(SHORTEST, 1 << max(0, math.floor(math.log2(samples / num_actors)))))


def _smallest(num_batches: int) -> int:
    return min(SMALLEST, max(1, ITERATION // num_batches))


def _divisor(batch_size: int, wanted: int) -> int:
    """The length that divides `batch_size`: the largest up to the wanted one, else the smallest above it."""
    if batch_size < SHORTEST:
        return batch_size
    fitting = [length for length in range(SHORTEST, LONGEST + 1) if batch_size % length == 0]
    require(
        bool(fitting),
        f"batch_size is {batch_size}: no length of a trajectory from {SHORTEST} to {LONGEST} divides it, so take for "
        f"example {max(1, round(batch_size / SHORTEST)) * SHORTEST}, or name --rollout",
    )
    return max((length for length in fitting if length <= wanted), default=fitting[0])


def _slots_per_batch(num_batches: int, rollout: int, num_actors: int, async_rl: bool) -> int:
    """The least with which an iteration holds a trajectory of every actor; in synchronous mode in whole rounds of them.

    In asynchronous mode in whole rounds where that takes no more than twice as many, and no fewer than half: what is
    left of a round is trained on an iteration later.
    """
    slots = max(math.ceil(_smallest(num_batches) / rollout), math.ceil(num_actors / num_batches))
    round_of_all = num_actors // math.gcd(num_actors, num_batches)
    if not async_rl:
        return math.ceil(slots / round_of_all) * round_of_all
    in_rounds = max(1, round(slots / round_of_all)) * round_of_all
    return in_rounds if slots / 2 <= in_rounds <= 2 * slots else slots


def with_learning_rate(config: Config, has_memory: bool, num_continuous: int) -> Config:
    """The configuration, whose sizes are numbers, with values for all of them. has_memory: the network has a recurrent
    state. num_continuous: how many numbers an action has.

    A policy that has learned its task hardly moves, so `kl_adaptive` raises the rate up to its limit. A recurrent
    network forgets there what it has learned: see benchmarks/learning_tried.md.
    """
    learner = config.learner
    schedule, highest = learner.lr_schedule, learner.lr_adaptive_max
    if schedule == "auto":
        schedule = "linear" if config.run.ends_by_steps or config.run.ends_by_seconds else "constant"
    if highest == "auto":
        highest = learner.learning_rate * (1.0 if has_memory else _HIGHEST)
    final = learner.lr_adaptive_max_final
    if final == "auto":
        assert learner.batch_size != "auto"  # see sf.config.auto_values
        final = 0.0 if learner.batch_size * learner.num_batches_per_epoch <= _FALLS_WITH else None
    threshold = learner.lr_schedule_kl_threshold
    if threshold == "auto":
        threshold = _KL_THRESHOLD * max(1, num_continuous) ** 0.5
    return config.replace(
        lr_schedule=schedule,
        lr_adaptive_max=max(highest, learner.lr_adaptive_min),
        lr_adaptive_max_final=final,
        lr_schedule_kl_threshold=threshold,
    )
