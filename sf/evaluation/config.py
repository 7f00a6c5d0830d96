"""Flags of evaluation during training, and of the best checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from sf.envs.field_types import check_fields


@dataclass(frozen=True)
class EvaluationConfig:
    """Episodes that are played beside the training, and what is kept of the best time. See sf.evaluation.evaluator."""

    eval_every_env_steps: int | None = None
    """Evaluate all policies each time that this many more env steps are trained on. Default: never."""

    eval_episodes: int = 20
    """Episodes of each policy in an evaluation. The environments are seeded alike in all of them."""

    eval_num_envs: int = 4
    """Environments that are stepped together for it, in one process of low priority, on the CPU."""

    eval_deterministic: bool = False
    """Evaluate with the most probable actions. false: with drawn ones, as in training."""

    save_best_every_sec: float = 60.0
    """Beside the latest checkpoints the best one is kept, renewed at most this often: by the evaluations, or without
    them by the latest stats_avg episodes, as pbt_target_objective counts them."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("eval_every_env_steps", "eval_episodes", "eval_num_envs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: at least 1")
        if self.save_best_every_sec <= 0:
            raise ValueError(f"save_best_every_sec is {self.save_best_every_sec}: it must be above 0")
