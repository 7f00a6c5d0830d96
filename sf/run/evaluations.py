"""When a run evaluates its policies, what becomes of the results, and the best checkpoints of a run that does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sf.evaluation.statistics import Statistics, interval_text
from sf.metrics.progress import Progress
from sf.metrics.writer import MetricsWriter
from sf.queues import IndexQueue
from sf.run.memory import RunMemory
from sf.storage import checkpoint

_METRICS = {"return": "mean_return", "num_steps": "mean_episode_steps", "num_frames": "mean_episode_frames"}


class Evaluations:
    """Orders an evaluation each time that this many more env steps are done, one after another.

    A slow evaluation is never interrupted; missed ones are skipped.
    """

    def __init__(
        self,
        every_env_steps: int | None,
        resumed_env_steps: int,
        orders: IndexQueue | None,
        progress: Progress,
        writer: MetricsWriter,
        say: Callable[[str], None],
    ) -> None:
        """every_env_steps, orders: None where there are no evaluations. resumed_env_steps: of earlier parts of the run,
        which have been evaluated."""
        self._every = every_env_steps
        self._orders = orders
        self._progress = progress
        self._writer = writer
        self._say = say
        self._is_running = False
        # Multiples of every_env_steps that have been passed.
        self._num_due = 0 if every_env_steps is None else resumed_env_steps // every_env_steps

    def order_if_due(self) -> None:
        if self._orders is None or self._every is None or not self._progress.has_begun:
            return
        num_due = self._progress.env_steps // self._every
        if num_due > self._num_due and not self._is_running:
            self._num_due = num_due
            self._is_running = True
            self._orders.put(0)

    def evaluated(self, report: dict[str, Any]) -> None:
        """The evaluator has played."""
        self._is_running = False
        policies = report["policies"]
        for policy_id, result in enumerate(policies):
            if not result["statistics"]:
                self._say(f"evaluation of policy {policy_id}: no episodes, because its agents never played")
                continue
            prefix = "" if len(policies) == 1 else f"policy_{policy_id:02d}/"
            record = {"policy_id": policy_id, "seconds": self._progress.seconds, **result}
            self._writer.write_evaluation({**record, "env_faults": report["env_faults"]})
            self._progress.add_evaluation(
                {f"{prefix}eval/{name}": value for name, value in evaluation_metrics(result).items()}
            )
            s = Statistics(**result["statistics"]["return"])
            self._say(
                f"evaluation{f' of policy {policy_id}' if prefix else ''} at {result['env_steps']:,} env steps: mean "
                f"return {s.mean:,.2f} ({interval_text(s)}) over {s.num} episodes"
            )

    def interrupted(self) -> None:
        """The evaluator has died, and with it what it was playing; the next one is ordered when it is due."""
        self._is_running = False

    def given_up(self) -> None:
        """There is no evaluator any more."""
        self._is_running = False
        self._orders = None

    @property
    def are_made(self) -> bool:
        """Whether they decide over the best checkpoints."""
        return self._orders is not None

    def end(self) -> None:
        """The run has ended, and the evaluator with it."""
        if self._is_running:
            self._say("the run ended during an evaluation, which is dropped: sf-eval evaluates the last checkpoint")


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
                checkpoint.save_best(self._memory.checkpoints_of(policy_id), remembered, score)
            except OSError as error:
                self._say(f"the best checkpoint of policy {policy_id} could not be saved ({error})")
            else:
                self._best[policy_id] = score


def evaluation_metrics(result: dict[str, Any]) -> dict[str, float]:
    """Flat names and numbers of what the evaluator reports of a policy."""
    metrics = {"env_steps": result["env_steps"]}
    for name, s in result["statistics"].items():
        metrics[_METRICS.get(name, f"stats/{name}")] = s["mean"]
        if name == "return":
            metrics["median_return"] = s["median"]
            if s["low"] is not None:
                metrics |= {"mean_return_low": s["low"], "mean_return_high": s["high"]}
    return metrics
