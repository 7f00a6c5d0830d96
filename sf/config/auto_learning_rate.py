"""`lr_schedule`, `lr_adaptive_max`, its end and `lr_schedule_kl_threshold` where they are auto."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sf.config.config import Config

_HIGHEST = 2.0  # of the learning rate
_KL_THRESHOLD = 0.008  # nats, of one action
_FALLS_WITH = 8192  # samples of an iteration at most, where the rate falls to 0: see benchmarks/learning_tried.md


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
        assert learner.batch_size != "auto"  # see sf.config.auto_sizes
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
