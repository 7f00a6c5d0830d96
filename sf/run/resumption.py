"""Whether a run that is there can be gone on with, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sf.learner.tensors import RNG
from sf.play.named_checkpoint import require_whole_state
from sf.run.compatibility import require_fits
from sf.run.plan import Plan
from sf.storage import checkpoint
from sf.storage.checkpoint import Checkpoint
from sf.storage.run_dir import RunDir

_OF_THE_UPDATER = ("version", "learning_rate", "max_learning_rate", "skipped_updates")


class CompleteRunError(ValueError):
    """The run has all that it was to have, so there is nothing to go on with."""


def saved_env_steps(plan: Plan, run_dir: RunDir, say: Callable[[str], None]) -> list[int | None]:
    """Of each policy, None where it has no checkpoint. Raises ValueError where what is saved cannot be gone on with."""
    saved_flags = run_dir.saved_flags() or {}
    num_policies = saved_flags.get("num_policies", 1)
    if saved_flags and num_policies != plan.num_policies:
        raise ValueError(
            f"num_policies is {plan.num_policies}, but the run {run_dir.path} has {num_policies}: keep that number, "
            "name another --experiment, or start over with --restart_behavior restart"
        )
    env_steps: list[int | None] = []
    seconds = 0.0
    for policy_id in range(plan.num_policies):
        file = checkpoint.latest(run_dir.checkpoints_of(policy_id, plan.num_policies), say)
        if file is None:
            env_steps.append(None)
            continue
        saved = checkpoint.load(file)
        _require_all_parts(saved, file)
        require_fits(saved, file, plan, "leave the flags as they were, or name another --experiment")
        env_steps.append(checkpoint.env_steps(file))
        seconds = max(seconds, saved.state["seconds"])
    _require_time_left(plan, run_dir, sum(steps or 0 for steps in env_steps), seconds)
    return env_steps


def _require_all_parts(saved: Checkpoint, file: Path) -> None:
    """Raises ValueError where the learner would miss something."""
    require_whole_state(saved, file)
    updater = saved.state.get("updater")
    numbers = [saved.state.get(name) for name in ("trained_steps", "seconds")]
    numbers += [updater.get(name) if isinstance(updater, dict) else None for name in _OF_THE_UPDATER]
    if RNG not in saved.tensors or not all(isinstance(number, int | float) for number in numbers):
        raise ValueError(
            f"{file} lacks a part of what a learner goes on with: remove it, so that the one before is taken, or begin "
            "a new run with its weights (--init_from)"
        )


def _require_time_left(plan: Plan, run_dir: RunDir, env_steps: int, seconds: float) -> None:
    run = plan.config.run
    if env_steps >= plan.target_env_steps:
        flag = "train_for_env_steps" if plan.target_env_steps == run.train_for_env_steps else "train_for_env_frames"
        raise CompleteRunError(
            f"the run {run_dir.path} is finished ({env_steps} env steps): raise --{flag} to continue it, name another "
            "--experiment, or start over with --restart_behavior restart"
        )
    if seconds >= run.train_for_seconds:
        raise CompleteRunError(
            f"the run {run_dir.path} is finished ({seconds:.0f} seconds): raise --train_for_seconds to continue it, "
            "name another --experiment, or start over with --restart_behavior restart"
        )
