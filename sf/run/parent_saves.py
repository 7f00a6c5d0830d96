"""Checkpoints that the parent writes: the best of a run that does not evaluate, and for learners that could not."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from sf.metrics.progress import Progress
from sf.run.memory import RunMemory
from sf.shared.recovery import save_remembered
from sf.storage import best_checkpoint, run_lock
from sf.storage.run_dir import RunDir
from sf.system.messages import nobody, said_to, say


class BestCheckpoints:
    """Keeps the checkpoint of each policy's best time, as the episodes of its training tell, where there are no
    evaluations, or none any more: then it has to be better than the best of them. So for each of several tasks."""

    def __init__(self, memory: RunMemory, progress: Progress) -> None:
        self._memory = memory
        self._progress = progress
        # Of each policy over all tasks, and at each of several.
        kinds = itertools.product(range(memory.plan.num_policies), (None, *memory.plan.spec.tasks))
        self._best = {kind: best_checkpoint.best_score(self._directory(*kind)) for kind in kinds}
        self._due_at = dict.fromkeys(self._best, 0.0)

    def keep_if_due(self, now: bool = False) -> None:
        """now: whether or not it is long enough since the last one."""
        config = self._memory.plan.config
        for policy_id, task in self._best:
            policy, kind = self._progress.policies[policy_id], (policy_id, task)
            score = policy.objective(self._progress.objective) if task is None else policy.return_of_task(task)
            if score is None or not score > self._best[kind]:
                continue
            if not (now or time.monotonic() >= self._due_at[kind]):
                continue
            remembered = self._memory.recoveries[policy_id].read()
            if remembered is None:  # a moment later there will be something
                continue
            self._due_at[kind] = time.monotonic() + config.evaluation.save_best_every_sec
            try:
                best_checkpoint.save_best(self._directory(*kind), remembered, score)
            except OSError as error:
                say(f"the best checkpoint of policy {policy_id} could not be saved ({error})")
            else:
                self._best[kind] = score

    def _directory(self, policy_id: int, task: str | None) -> Path:
        directory = self._memory.checkpoints_of(policy_id)
        return directory if task is None else best_checkpoint.of_task(directory, task)


def save_for_learner(memory: RunMemory, policy_id: int) -> Path | None:
    """Write the state that it remembered last. Returns the checkpoint from which the run resumes.

    None where nothing was remembered, or another rank saves. Raises OSError where it cannot be written, ValueError
    where there are checkpoints and none is whole.
    """
    plan, remembered = memory.plan, memory.recoveries[policy_id]
    run = plan.config.run
    if plan.place.saves:
        return save_remembered(remembered, memory.checkpoints_of(policy_id), run.keep_checkpoints)
    # Of ranks on one disk the first saves; where its parent has gone, whichever of the others is there first.
    run_dir = RunDir.at(run.train_dir, run.experiment_name).itself()
    try:
        with said_to(nobody), run_dir.locked():
            checkpoints = run_dir.checkpoints_of(policy_id, plan.num_policies)
            return save_remembered(remembered, checkpoints, run.keep_checkpoints)
    except run_lock.HeldError:
        return None
