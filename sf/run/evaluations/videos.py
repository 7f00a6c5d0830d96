"""What becomes of the videos that the evaluator of a run makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sf.metrics.readable import number
from sf.metrics.sinks.writer import MetricsWriter, VideoRecord
from sf.processes.reports import Filmed
from sf.run.evaluations.orders import EvaluatorOrders
from sf.screen.preview import size_of
from sf.storage import video_files


class Videos:
    """Hands videos to TensorBoard and W&B, and says where they are. directories: of all policies."""

    def __init__(
        self,
        orders: EvaluatorOrders,
        directories: Sequence[Path],
        frameskip: int,
        writer: MetricsWriter,
        say: Callable[[str], None],
    ) -> None:
        self._orders = orders
        self._directories = directories
        self._frameskip = frameskip
        self._writer = writer
        self._say = say
        self._is_failing = False

    def filmed(self, report: Filmed) -> None:
        """The evaluator has made one of each policy, or could not."""
        self._orders.done()
        for video in report.videos:
            self._hand_on(video, report.env_steps)
        for failure in report.failures:
            if not self._is_failing:
                self._say(f"a video is missing ({failure}); training goes on, and the next one is tried")
            self._is_failing = True
        self._is_failing = bool(report.failures)

    def remove_unfinished(self) -> None:
        """The evaluator has ended, perhaps in the middle of one."""
        for directory in self._directories:
            video_files.remove_unfinished(directory)

    def _hand_on(self, video: dict[str, Any], env_steps: int) -> None:
        policy_id, path = video["policy_id"], Path(video["path"])
        is_only = len(self._directories) == 1
        try:
            gif = video_files.take_preview(path)
        except OSError as error:
            self._say(f"{path} is not in TensorBoard ({error})")
            return
        name = "video" if is_only else f"policy_{policy_id:02d}/video"
        self._writer.write_video(VideoRecord(name, env_steps * self._frameskip, path, gif, size_of(gif)))
        returns = video["returns"]
        ended = f", mean return {number(sum(returns) / len(returns))}" if returns else ""
        cut = ", cut off by --video_max_seconds" if video["is_cut"] else ""
        of_policy = "" if is_only else f" of policy {policy_id}"
        self._say(f"video{of_policy} at {video['env_steps']:,} env steps: {path}{ended}{cut}")
