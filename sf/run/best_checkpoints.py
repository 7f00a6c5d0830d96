"""The best checkpoints of a run that does not evaluate."""

from __future__ import annotations

import time
from collections.abc import Callable

from sf.metrics.progress import Progress
from sf.run.memory import RunMemory
from sf.storage import checkpoint


class BestCheckpoints:
    """Keeps the checkpoint of each policy's best time, as the episodes of its training tell, where there are no
    evaluations, or none any more: then it has to be better than the best of them."""

    def __init__(self, memory: RunMemory, progress: Progress, say: Callable[[str], None]) -> None:
        self._memory = memory
        self._progress = progress
        self._say = say
        policy_ids = range(memory.plan.num_policies)
        self._best = {policy_id: checkpoint.best_score(memory.checkpoints_of(policy_id)) for policy_id in policy_ids}
        self._due_at = dict.fromkeys(policy_ids, 0.0)

    def keep_if_due(self, now: bool = False) -> None:
        """now: whether or not it is long enough since the last one."""
        config = self._memory.plan.config
        for policy_id, policy in enumerate(self._progress.policies):
            score = policy.objective(self._progress.objective)
            if score is None or not score > self._best[policy_id]:
                continue
            if not (now or time.monotonic() >= self._due_at[policy_id]):
                continue
            remembered = self._memory.recoveries[policy_id].read()
            if remembered is None:  # a moment later there will be something
                continue
            self._due_at[policy_id] = time.monotonic() + config.evaluation.save_best_every_sec
            try:
                checkpoint.save_best(self._memory.checkpoints_of(policy_id), remembered, score, self._say)
            except OSError as error:
                self._say(f"the best checkpoint of policy {policy_id} could not be saved ({error})")
            else:
                self._best[policy_id] = score
