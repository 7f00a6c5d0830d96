"""Flags of evaluation during training, and of the best checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import check_fields


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation during training, and the best checkpoint: docs/evaluation.md."""

    eval_every_env_steps: int | None = None
    """Evaluate all policies every time this many env steps have been trained on. Default: never."""

    eval_episodes: int = 20
    """Episodes per policy in an evaluation. Every evaluation uses the same environment seeds."""

    eval_num_envs: int = 4
    """Environments that the evaluator steps together. It is one process of low priority, on the CPU."""

    eval_deterministic: bool = False
    """Evaluate with the most probable actions. false: sample them, as in training."""

    save_best_every_sec: float = 60.0
    """Save the best checkpoint at most once in this many seconds. Evaluations decide which is best; without them,
    the latest stats_avg episodes of training do. Both use pbt_target_objective."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("eval_every_env_steps", "eval_episodes", "eval_num_envs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: at least 1")
        if self.save_best_every_sec <= 0:
            raise ValueError(f"save_best_every_sec is {self.save_best_every_sec}: it must be above 0")
