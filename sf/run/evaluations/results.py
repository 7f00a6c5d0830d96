"""What becomes of the evaluations of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sf.evaluation.statistics import Statistics, mean_text
from sf.metrics.progress import Progress
from sf.metrics.sinks.writer import MetricsWriter
from sf.processes.reports import Evaluated, Exploited
from sf.run.evaluations.orders import EvaluatorOrders

_METRICS = {"return": "mean_return", "num_steps": "mean_episode_steps", "num_frames": "mean_episode_frames"}


class Evaluations:
    """What becomes of evaluations: lines of evaluations.jsonl, metrics and sentences."""

    def __init__(
        self, orders: EvaluatorOrders, progress: Progress, writer: MetricsWriter, say: Callable[[str], None]
    ) -> None:
        self._orders = orders
        self._progress = progress
        self._writer = writer
        self._say = say
        self._exploited_at: dict[int, int] = {}  # env steps of each policy's latest exploitability

    def evaluated(self, report: Evaluated) -> None:
        """The evaluator has played."""
        self._orders.done()
        policies = report.policies
        for policy_id, result in enumerate(policies):
            if not result["statistics"]:
                self._say(f"evaluation of policy {policy_id}: no episodes, because its agents never played")
                continue
            prefix = _prefix(policy_id, len(policies))
            record = {"policy_id": policy_id, "seconds": self._progress.seconds, **result}
            self._writer.write_evaluation({**record, "env_faults": report.env_faults})
            self._progress.add_to_record(
                {f"{prefix}eval/{name}": value for name, value in evaluation_metrics(result).items()}
            )
            s = Statistics(**result["statistics"]["return"])
            self._say(
                f"evaluation{f' of policy {policy_id}' if prefix else ''} at {result['env_steps']:,} env steps: mean "
                f"return {mean_text(s)}"
            )

    def exploited(self, report: Exploited) -> None:
        """The evaluator has computed how far each policy can be exploited.

        The same weights count once: they are seconds old, and in small games many orders fit into that time.
        """
        self._orders.done()
        policies = report.policies
        for policy_id, result in enumerate(policies):
            if self._exploited_at.get(policy_id) == result["env_steps"]:
                continue
            self._exploited_at[policy_id] = result["env_steps"]
            prefix = _prefix(policy_id, len(policies))
            self._writer.write_evaluation({"policy_id": policy_id, "seconds": self._progress.seconds, **result})
            self._progress.add_to_record({f"{prefix}eval/{name}": value for name, value in result.items()})
            self._say(
                f"exploitability{f' of policy {policy_id}' if prefix else ''} at {result['env_steps']:,} env steps: "
                f"{result['exploitability']:.4f}"
            )


def _prefix(policy_id: int, num_policies: int) -> str:
    """Of the metrics of a policy."""
    return "" if num_policies == 1 else f"policy_{policy_id:02d}/"


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
