"""Whether a run that is there can be gone on with, and how far it is."""

from __future__ import annotations

from collections.abc import Callable

from sf import checkpoint
from sf.plan import Plan
from sf.run_dir import RunDir


class CompleteRunError(ValueError):
    """The run has all that it was to have, so there is nothing to go on with."""


def saved_env_steps(plan: Plan, run_dir: RunDir, say: Callable[[str], None]) -> list[int | None]:
    """Of each policy, None where it has no checkpoint. Raises ValueError where what is saved cannot be gone on with."""
    saved_flags = run_dir.saved_flags() or {}
    num_policies = saved_flags.get("num_policies", 1)
    if saved_flags and num_policies != plan.num_policies:
        raise ValueError(
            f"num_policies is {plan.num_policies}, but the run {run_dir.path} has {num_policies}: leave it so, name "
            "another --experiment, or begin anew with --restart_behavior restart"
        )
    env_steps: list[int | None] = []
    seconds = 0.0
    for policy_id in range(plan.num_policies):
        saved = checkpoint.latest(run_dir.checkpoints_of(policy_id, plan.num_policies), say)
        if saved is None:
            env_steps.append(None)
            continue
        checkpoint.check_fits(saved, plan.weight_shapes)
        env_steps.append(checkpoint.env_steps(saved))
        seconds = max(seconds, checkpoint.load(saved).state["seconds"])
    _require_time_left(plan, run_dir, sum(steps or 0 for steps in env_steps), seconds)
    return env_steps


def _require_time_left(plan: Plan, run_dir: RunDir, env_steps: int, seconds: float) -> None:
    run = plan.config.run
    if env_steps >= plan.target_env_steps:
        flag = "train_for_env_steps" if plan.target_env_steps == run.train_for_env_steps else "train_for_env_frames"
        raise CompleteRunError(
            f"the run {run_dir.path} has its {env_steps} env steps: raise --{flag} to go on with it, name another "
            "--experiment, or begin anew with --restart_behavior restart"
        )
    if seconds >= run.train_for_seconds:
        raise CompleteRunError(
            f"the run {run_dir.path} has had its {seconds:.0f} seconds: raise --train_for_seconds to go on with it, "
            "name another --experiment, or begin anew with --restart_behavior restart"
        )
