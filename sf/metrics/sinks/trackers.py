"""Sinks for trackers: libraries that show runs while they train, such as Weights & Biases.

A tracker is a module beside this one, a line in `TRACKERS`, a flag `with_NAME` and an extra of pyproject.toml. To start
it, to reach its server and to end it may take minutes, so a thread makes all calls. Records that it cannot keep up with
are dropped. A failure is reported once and ends no run.
"""

from __future__ import annotations

import importlib.util
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from sf.config import Config
from sf.metrics.sinks.tensorboard import tag
from sf.metrics.sinks.trackio_sink import TrackioRun
from sf.metrics.sinks.wandb_sink import WandbRun
from sf.metrics.sinks.writer import Sink, VideoRecord
from sf.storage.run_dir import RunDir
from sf.system.machine.extras import how_to_install
from sf.system.messages import say

_TIMEOUT_S = 30.0  # for sending the rest at the end
_MAX_WAITING = 1000  # records
_SENT = int | float | Path  # the values of a record that are sent


class TrackerRun(Protocol):
    """A run in a tracker, which continues if the run directory is resumed. May raise anything.

    Names are those of TensorBoard. A path is that of a video.
    """

    def log(self, values: dict[str, float | Path], env_frames: int) -> None:
        """Adds a record."""

    def finish(self, summary: dict[str, float | Path]) -> None:
        """Sends what is left. No more records follow."""


# By the name of the package, which is also that of the extra.
TRACKERS: dict[str, Callable[[RunDir, Config], TrackerRun]] = {
    "wandb": WandbRun,
    "trackio": TrackioRun,
}


def require_trackers(config: Config) -> None:
    """Raises ValueError if a tracker that the flags ask for is not installed."""
    for name in _asked_for(config):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:  # a folder with this name, such as a tracker's files, is not a package
            raise ValueError(
                f"with_{name} is true, but {name} is not installed: {how_to_install(name)}; or leave with_{name} false"
            )


def tracker_sinks(run_dir: RunDir, config: Config) -> list[Sink]:
    """Starts the trackers that the flags ask for."""
    return [TrackerSink(name, partial(TRACKERS[name], run_dir, config)) for name in _asked_for(config)]


def _asked_for(config: Config) -> list[str]:
    return [name for name in TRACKERS if getattr(config.watch, f"with_{name}")]


class TrackerSink:
    """Hands records to a tracker. start: called by the thread."""

    def __init__(self, name: str, start: Callable[[], TrackerRun]) -> None:
        self.name = name
        self._start = start
        self._waiting = queue.Queue[tuple[dict[str, Any], bool]](_MAX_WAITING)  # and whether it is the last
        send = partial(copy_context().run, self._send)  # so that its messages are shown where those of the run are
        self._thread = threading.Thread(target=send, name=name, daemon=True)
        self._thread.start()

    def write(self, record: dict[str, Any]) -> None:
        """Never blocks."""
        with suppress(queue.Full):
            self._waiting.put_nowait((record, False))

    def write_video(self, video: VideoRecord) -> None:
        """Never blocks."""
        self.write({"env_frames": video.env_frames, video.name: video.path})

    def finish(self, summary: dict[str, Any]) -> None:
        """Waits until all is sent, at most half a minute or so, or until Ctrl-C."""
        with suppress(queue.Full, KeyboardInterrupt):
            self._waiting.put((summary, True), timeout=_TIMEOUT_S)
            self._thread.join(_TIMEOUT_S + 5.0)

    def _send(self) -> None:
        is_last = False
        try:
            run = self._start()
            while not is_last:
                record, is_last = self._waiting.get()
                values = {tag(name): value for name, value in record.items() if isinstance(value, _SENT)}
                if is_last:
                    run.finish(values)
                else:
                    run.log(values, record["env_frames"])
        except Exception as error:  # nothing that fails here may end a training run
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            say(f"{self.name}: no more records are sent ({reason}); training goes on")
        while not is_last:  # so that no writer waits for room
            _, is_last = self._waiting.get()
