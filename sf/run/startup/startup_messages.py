"""Tells, when a run begins, that it resumes, and which settings it chose or cost speed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sf.config import Config, presets
from sf.run.plan import Plan
from sf.run.tasks import groups
from sf.storage.run_dir import NOT_SAVED, RunDir
from sf.system import gpu
from sf.system.processes.torch_runtime import has_bfloat16

_OF_ONE_RUN = {"config", *NOT_SAVED}  # what the file of another run says of itself alone
_END = "train_for_"  # how the flags begin that give an end: to resume a run that is finished one has to change it
_MOST_NAMED = 3  # settings of a file in one sentence


def startup_messages(plan: Plan, run: Path, resumed_steps: int) -> Iterator[str]:
    """Sentences. run: its directory. resumed_steps: env steps that were trained before this start."""
    if resumed_steps > 0:
        yield (
            f"resumes {run} at {resumed_steps:,} env steps (--restart_behavior restart starts over, --experiment NAME "
            "starts another run)"
        )
        yield from _what_the_file_says_now(plan.config)
    else:
        if _has_records(run):
            yield (
                f"{run} has records of an earlier start and no checkpoint, so training begins at 0 again; if its "
                "checkpoints were moved, stop this, move them back, and start again"
            )
        yield from _chosen(plan)
    if plan.spec.tasks:
        yield from groups.sentences(plan.config, plan.spec, plan.tasks_of_groups)
    if plan.why_no_loops is not None:
        yield (
            f"{plan.why_no_loops}, so the networks run without compiled loops, which is slower; --compile false "
            "silences this"
        )
    if plan.bfloat16 and not has_bfloat16(plan.device):
        where = "CPU" if plan.device == gpu.HOST else "GPU"
        yield (
            f"precision is bfloat16, for which this {where} has no instructions, so it is slower than float32: take "
            "--precision auto"
        )


def _has_records(run: Path) -> bool:
    try:
        return RunDir(run).metrics.stat().st_size > 0
    except OSError:
        return False


def _what_the_file_says_now(config: Config) -> Iterator[str]:
    """A file of flags is read when a run is new: who has changed it since may count on what it says."""
    path = config.run.config
    if path is None or path in presets.preset_names():
        return
    try:
        theirs = presets.load(path)
    except ValueError:
        return  # it is gone, or broken, and this run does not need it
    ours = config.flat()
    changed = [
        f"{name} {theirs[name]} (the run: {ours[name]})"
        for name in sorted(theirs.keys() - _OF_ONE_RUN)
        if theirs[name] not in (ours[name], "auto") and not name.startswith(_END)
    ]
    if changed:
        named = ", ".join(changed[:_MOST_NAMED]) + (" and more" if changed[_MOST_NAMED:] else "")
        yield (
            f"{path} says {named}: a run keeps the settings that it was started with, and flags on the command line "
            "change them"
        )


def _chosen(plan: Plan) -> Iterator[str]:
    config = plan.config
    if config.run.config:
        yield f"starts from the preset {config.run.config} (--config NAME selects another)"
    if plan.has_auto_sizes:
        yield (
            f"{plan.num_actors:,} actors: trajectories of {config.rollout} steps (--rollout), minibatches of "
            f"{config.learner.batch_size:,} (--batch_size)"
        )
