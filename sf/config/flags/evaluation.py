"""Flags of evaluation during training, of videos, and of the best checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from sf.config.flags.ranges import require_range
from sf.envs.field_types import check_fields

_MOST_VIDEO_ENVS = 9
_MOST_SECONDS = 120.0


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation and videos during training, and the best checkpoint: docs/evaluation.md, docs/watching.md."""

    eval_every_env_steps: int | None = None
    """Evaluate all policies every time this many env steps have been trained on. Default: never."""

    eval_episodes: int = 20
    """Episodes per policy in an evaluation, at each of several tasks. Every evaluation uses the same environment
    seeds."""

    eval_num_envs: int = 4
    """Environments that the evaluator steps together. It is one process of low priority, on the CPU."""

    eval_deterministic: bool = False
    """Evaluate with the most probable actions. false: sample them, as in training."""

    exploitability_every_env_steps: int | None = None
    """Compute the exploitability of each policy every time this many env steps have been trained on, in a game of
    OpenSpiel that is small enough: docs/openspiel.md. It is exact. eval_deterministic applies. Default: never."""

    video_every_env_steps: int | None = None
    """Film an episode of each policy every time this many env steps have been trained on: docs/watching.md. Videos go
    to videos/ in the run directory, TensorBoard, W&B and sf-report. 0 or not set: never."""

    video_envs: int = 1
    """Environments that are filmed side by side, one episode each, from 1 to 9. 4: two rows of two."""

    video_max_seconds: float = 20.0
    """Maximum length of a video in seconds, from 1 to 120. A longer episode is cut off there."""

    save_best_every_sec: float = 60.0
    """Save the best checkpoint at most once in this many seconds. Evaluations decide which is best; without them,
    the latest stats_avg episodes of training do. Both use pbt_target_objective."""

    def __post_init__(self) -> None:
        check_fields(self)
        names = ("eval_every_env_steps", "exploitability_every_env_steps", "eval_episodes", "eval_num_envs")
        require_range(self, *names, least=1)
        require_range(self, "video_every_env_steps", least=0)
        require_range(self, "video_envs", least=1, most=_MOST_VIDEO_ENVS)
        require_range(self, "video_max_seconds", least=1, most=_MOST_SECONDS)
        require_range(self, "save_best_every_sec", above=0)
