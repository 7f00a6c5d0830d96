"""Records for Weights & Biases, under the names that they have in TensorBoard.

wandb sends from a process of its own, but to start it, to reach the server for the first time, and to end it may take
minutes. So a thread makes all calls. Records that it cannot keep up with are dropped. A failure is reported once and
ends no run.
"""

from __future__ import annotations

import importlib.util
import os
import queue
import secrets
import threading
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

from sf.config import Config
from sf.metrics.sinks.tensorboard import tag
from sf.metrics.sinks.writer import VideoRecord
from sf.storage.run_dir import RunDir, write_atomically
from sf.system.messages import say

_TIMEOUT_S = 30.0  # of each: reaching the server, and sending the rest at the end
_MAX_WAITING = 1000  # records
_SENT = int | float | Path  # of what a record has


def require_wandb() -> None:
    """Raises ValueError where it is not installed."""
    spec = importlib.util.find_spec("wandb")
    if spec is None or spec.origin is None:  # a folder of this name, where wandb has left its files, is no package
        raise ValueError("with_wandb is true, but wandb is not installed: pip install wandb, or leave with_wandb false")


class WandbSink:
    """One W&B run for all parts of a resumed run: its id is kept in the run directory."""

    name = "Weights & Biases"

    def __init__(self, run_dir: RunDir, config: Config) -> None:
        self._run_dir = run_dir
        self._config = config
        self._waiting = queue.Queue[tuple[dict[str, Any], bool]](_MAX_WAITING)  # and whether it is the last
        send = partial(copy_context().run, self._send)  # so that its messages are shown where those of the run are
        self._thread = threading.Thread(target=send, name="wandb", daemon=True)
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
                values = {tag(name): _sent(value) for name, value in record.items() if isinstance(value, _SENT)}
                if is_last:
                    run.summary.update(values)
                else:
                    run.log(values)
            run.finish()
        except Exception as error:  # nothing that fails here may end a training run
            say(f"wandb: no more records are sent ({_in_a_line(error)}); training goes on")
        while not is_last:  # so that no writer waits for room
            _, is_last = self._waiting.get()

    def _start(self) -> Any:
        """The W&B run. Without an API key or a server it is kept in the run directory."""
        import wandb  # noqa: PLC0415  an extra, and slow to import

        wandb.setup(wandb.Settings(silent=True))
        try:
            has_key = "WANDB_MODE" in os.environ or wandb.login(prompt=False, verify=False)
            run = self._init(os.environ.get("WANDB_MODE") or ("online" if has_key else "offline"))
        except wandb.Error as error:
            say(f"wandb: the server takes no run ({_in_a_line(error)})")
            wandb.teardown()  # else the id counts as in use
            run = self._init("offline")
        run.define_metric("*", step_metric=tag("env_frames"))  # a resumed run may go back a little
        kept_in = run.settings.sync_dir
        if run.offline:
            say(f"wandb: kept in {kept_in}; to send it: wandb sync {kept_in}")
        elif run.url:  # none where WANDB_MODE is disabled
            say(f"wandb: {run.url}")
        return run

    def _init(self, mode: str) -> Any:
        import wandb  # noqa: PLC0415

        watch = self._config.watch
        return wandb.init(
            mode=mode,
            project=watch.wandb_project,
            entity=watch.wandb_entity,
            group=watch.wandb_group,
            tags=watch.wandb_tags,
            name=self._config.run.experiment_name,
            id=self._id(),
            resume="allow",
            dir=self._run_dir.path,
            config=self._config.flat(),
            settings=wandb.Settings(
                console="off",  # the display draws over itself
                silent=True,
                init_timeout=_TIMEOUT_S,
                finish_timeout=_TIMEOUT_S,
            ),
        )

    def _id(self) -> str:
        path = self._run_dir.path / "wandb" / "id"
        if not path.exists():
            write_atomically(path, secrets.token_hex(4).encode())
        return path.read_text()


def _sent(value: float | Path) -> Any:
    """Returns the value as W&B takes it. A path is that of a video."""
    import wandb  # noqa: PLC0415

    return wandb.Video(str(value), format="mp4") if isinstance(value, Path) else value


def _in_a_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
