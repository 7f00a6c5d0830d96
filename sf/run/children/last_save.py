"""Saves in the parent what a learner could not save."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sf.run.memory import RunMemory
from sf.shared.recovery import save_remembered
from sf.storage import run_lock
from sf.storage.run_dir import RunDir


def save_for_learner(memory: RunMemory, policy_id: int, say: Callable[[str], None]) -> Path | None:
    """Write the state that it remembered last. Returns the checkpoint from which the run resumes.

    None where nothing was remembered, or another rank saves. Raises OSError where it cannot be written, ValueError
    where there are checkpoints and none is whole.
    """
    with _directory(memory, policy_id) as checkpoints:
        if checkpoints is None:
            return None
        keep = memory.plan.config.run.keep_checkpoints
        return save_remembered(memory.recoveries[policy_id], checkpoints, keep, say)


@contextmanager
def _directory(memory: RunMemory, policy_id: int) -> Iterator[Path | None]:
    """Of ranks on one disk the first saves; where its parent has gone, whichever of the others is there first.

    None where another one does it.
    """
    plan = memory.plan
    if plan.place.saves:
        yield memory.checkpoints_of(policy_id)
        return
    of_run = RunDir.at(plan.config.run.train_dir, plan.config.run.experiment_name).itself()
    try:
        with of_run.locked(lambda sentence: None):
            yield of_run.checkpoints_of(policy_id, plan.num_policies)
    except run_lock.HeldError:
        yield None
