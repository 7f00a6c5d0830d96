"""What a run asks of its evaluator, and what becomes of the answers: evaluations, exploitability and videos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sf.evaluation.evaluator import EVALUATE, EXPLOIT, FILM
from sf.evaluation.pictures.video import size_of
from sf.evaluation.statistics import Statistics, mean_text
from sf.metrics.progress import Progress
from sf.metrics.readable import number
from sf.metrics.sinks.writer import MetricsWriter, VideoRecord
from sf.metrics.task_scores import task_scores
from sf.shared.queues import IndexQueue
from sf.storage import video_files
from sf.system.messages import say
from sf.system.processes.reports import Evaluated, Exploited, Filmed

_ONE = {EVALUATE: "an evaluation", FILM: "a video", EXPLOIT: "a computation of exploitability"}
_MANY = {EVALUATE: "evaluations", FILM: "videos", EXPLOIT: "exploitability"}
_AFTERWARDS = {
    EVALUATE: "sf-eval evaluates the last checkpoint",
    FILM: "sf-enjoy --video films the last checkpoint",
    EXPLOIT: "sf-eval --exploitability true measures the last checkpoint",
}
_METRICS = {"return": "mean_return", "num_steps": "mean_episode_steps", "num_frames": "mean_episode_frames"}


class EvaluatorOrders:
    """Orders an evaluation, a video or an exploitability each time that this many more env steps are done, one after
    another.

    What is slow is never interrupted; missed ones are skipped. Where several are due, they take turns.
    """

    def __init__(
        self,
        every_env_steps: Mapping[int, int | None],
        resumed_env_steps: int,
        queue: IndexQueue | None,
        progress: Progress,
    ) -> None:
        """every_env_steps: None or 0 for never. queue: None without an evaluator. resumed_env_steps: done before."""
        self._queue = queue
        self._progress = progress
        self._every = {order: every for order, every in every_env_steps.items() if every}
        self._num_due = {order: resumed_env_steps // every for order, every in self._every.items()}  # multiples passed
        self._under_way: int | None = None

    def give_if_due(self) -> None:
        if self._queue is None or self._under_way is not None or not self._progress.has_begun:
            return
        for order, every in self._every.items():
            num_due = self._progress.env_steps // every
            if num_due > self._num_due[order]:
                self._num_due[order] = num_due
                self._under_way = order
                self._queue.put(order)
                self._every[order] = self._every.pop(order)  # the last to be asked about next time
                return

    def done(self) -> None:
        """The evaluator has done what was ordered; or it has died, and the next one is ordered when it is due."""
        self._under_way = None

    def given_up(self) -> None:
        """There is no evaluator any more."""
        self._under_way = None
        self._queue = None

    @property
    def is_filming(self) -> bool:
        """Returns whether a video is under way."""
        return self._under_way == FILM

    @property
    def has_evaluations(self) -> bool:
        """Returns whether evaluations select the best checkpoints."""
        return self._queue is not None and EVALUATE in self._every

    @property
    def words(self) -> str:
        """Returns what the run orders, in words."""
        return " and ".join(_MANY[order] for order in sorted(self._every))

    def end(self) -> None:
        """The run has ended, and the evaluator with it."""
        if self._under_way is not None:
            noun, afterwards = _ONE[self._under_way], _AFTERWARDS[self._under_way]
            say(f"the run ended during {noun}, which is dropped: {afterwards}")


@dataclass
class Evaluations:
    """Turns evaluations into lines of evaluations.jsonl, metrics and sentences."""

    orders: EvaluatorOrders
    progress: Progress
    writer: MetricsWriter
    _exploited_at: dict[int, int] = field(default_factory=dict)  # env steps of each policy's latest exploitability

    def evaluated(self, report: Evaluated) -> None:
        """The evaluator has played."""
        self.orders.done()
        for policy_id, result in enumerate(report.policies):
            if not result["statistics"]:
                say(f"evaluation of policy {policy_id}: no episodes, because its agents never played")
                continue
            which = self._note(
                policy_id, len(report.policies), {**result, "env_faults": report.env_faults}, evaluation_metrics(result)
            )
            s = Statistics(**result["statistics"]["return"])
            say(f"evaluation{which} at {result['env_steps']:,} env steps: mean return {mean_text(s)}")

    def exploited(self, report: Exploited) -> None:
        """Note how far each policy can be exploited. The same weights count once: they are seconds old."""
        self.orders.done()
        for policy_id, result in enumerate(report.policies):
            if self._exploited_at.get(policy_id) == result["env_steps"]:
                continue
            self._exploited_at[policy_id] = result["env_steps"]
            which = self._note(policy_id, len(report.policies), result, result)
            say(f"exploitability{which} at {result['env_steps']:,} env steps: {result['exploitability']:.4f}")

    def _note(self, policy_id: int, num_policies: int, line: Mapping[str, Any], metrics: Mapping[str, float]) -> str:
        """Write a line, and add metrics to the next record. Returns which of several policies it is, in words."""
        self.writer.write_evaluation({"policy_id": policy_id, "seconds": self.progress.seconds, **line})
        prefix = "" if num_policies == 1 else f"policy_{policy_id:02d}/"
        self.progress.add_to_record({f"{prefix}eval/{name}": value for name, value in metrics.items()})
        return f" of policy {policy_id}" if prefix else ""


def evaluation_metrics(result: dict[str, Any]) -> dict[str, float]:
    """Flat names and numbers of what the evaluator reports of a policy."""
    metrics = {"env_steps": result["env_steps"]}
    for name, s in result["statistics"].items():
        metrics[_METRICS.get(name, f"stats/{name}")] = s["mean"]
        if name == "return":
            metrics["median_return"] = s["median"]
            if s["low"] is not None:
                metrics |= {"mean_return_low": s["low"], "mean_return_high": s["high"]}
    scores = task_scores([{name: s["mean"] for name, s in result["statistics"].items()}])
    return metrics | {f"stats/{name}": score for name, score in scores.items()}


@dataclass
class Videos:
    """Hands videos to TensorBoard and W&B, and says where they are. directories: of all policies."""

    orders: EvaluatorOrders
    directories: Sequence[Path]
    frameskip: int
    writer: MetricsWriter
    _is_failing: bool = False

    def filmed(self, report: Filmed) -> None:
        """The evaluator has made one of each policy, or could not."""
        self.orders.done()
        for video in report.videos:
            self._hand_on(video, report.env_steps)
        if report.failures and not self._is_failing:
            say(f"a video is missing ({report.failures[0]}); training goes on, and the next one is tried")
        self._is_failing = bool(report.failures)

    def remove_unfinished(self) -> None:
        """The evaluator has ended, perhaps in the middle of one."""
        for directory in self.directories:
            video_files.remove_unfinished(directory)

    def _hand_on(self, video: dict[str, Any], env_steps: int) -> None:
        policy_id, path = video["policy_id"], Path(video["path"])
        is_only = len(self.directories) == 1
        try:
            gif = video_files.take_preview(path)
        except OSError as error:
            say(f"{path} is not in TensorBoard ({error})")
            return
        name = "video" if is_only else f"policy_{policy_id:02d}/video"
        self.writer.write_video(VideoRecord(name, env_steps * self.frameskip, path, gif, size_of(gif)))
        returns = video["returns"]
        ended = f", mean return {number(sum(returns) / len(returns))}" if returns else ""
        cut = ", cut off by --video_max_seconds" if video["is_cut"] else ""
        of_policy = "" if is_only else f" of policy {policy_id}"
        say(f"video{of_policy} at {video['env_steps']:,} env steps: {path}{ended}{cut}")
