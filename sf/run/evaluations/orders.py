"""When the evaluator of a run has something to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sf.evaluation.evaluator import EVALUATE, EXPLOIT, FILM
from sf.metrics.progress import Progress
from sf.queues import IndexQueue

_ONE = {EVALUATE: "an evaluation", FILM: "a video", EXPLOIT: "a computation of exploitability"}
_MANY = {EVALUATE: "evaluations", FILM: "videos", EXPLOIT: "exploitability"}
_AFTERWARDS = {
    EVALUATE: "sf-eval evaluates the last checkpoint",
    FILM: "sf-enjoy --video films the last checkpoint",
    EXPLOIT: "sf-eval --exploitability true measures the last checkpoint",
}


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
        say: Callable[[str], None],
    ) -> None:
        """every_env_steps: by order, None or 0 for never. queue: None where there is no evaluator.

        resumed_env_steps: of earlier parts of the run, which are done with.
        """
        self._queue = queue
        self._progress = progress
        self._say = say
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
        """Whether a video is under way."""
        return self._under_way == FILM

    @property
    def has_evaluations(self) -> bool:
        """Whether evaluations decide over the best checkpoints."""
        return self._queue is not None and EVALUATE in self._every

    @property
    def words(self) -> str:
        """What is ordered now and then."""
        return " and ".join(_MANY[order] for order in sorted(self._every))

    def end(self) -> None:
        """The run has ended, and the evaluator with it."""
        if self._under_way is not None:
            noun, afterwards = _ONE[self._under_way], _AFTERWARDS[self._under_way]
            self._say(f"the run ended during {noun}, which is dropped: {afterwards}")
