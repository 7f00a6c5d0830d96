"""A run in Trackio, which keeps it on this machine and shows it on a page, without an account."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from unittest.mock import patch

from sf.config import Config
from sf.storage.run_dir import RunDir
from sf.system.messages import say

PROJECT = "sf-appo"  # all runs are on one page
_SENDS = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL")  # variables by which a user asks Trackio to send records
_hub_lock = threading.Lock()  # for runs in several threads


class TrackioRun:
    """One Trackio run for all parts of a resumed run. It has no place for a summary."""

    def __init__(self, run_dir: RunDir, config: Config) -> None:
        import huggingface_hub.constants as hub  # noqa: PLC0415  comes with trackio
        import trackio  # noqa: PLC0415  an extra, and slow to import

        self._video = trackio.Video
        is_sent = any(os.environ.get(name) for name in _SENDS)
        # Trackio would ask the Hub for the user's name, also where it keeps all records here.
        with _hub_lock, patch.object(hub, "HF_HUB_OFFLINE", hub.HF_HUB_OFFLINE or not is_sent):
            self._run = trackio.init(
                PROJECT,
                name=f"{config.run.experiment_name}-{(run_dir.saved_id() or '')[:6]}",  # Trackio knows runs by name
                group=config.run.env,
                config=config.flat(),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        say(f"trackio: {self._run.name}; to see it: trackio show --project {PROJECT}")

    def log(self, values: dict[str, float | Path], env_frames: int) -> None:
        videos = {name: self._video(value) for name, value in values.items() if isinstance(value, Path)}
        self._run.log({**values, **videos}, step=env_frames)

    def finish(self, summary: dict[str, float | Path]) -> None:
        self._run.finish()
