"""A run in Weights & Biases. wandb sends from a process of its own, but starting it may take minutes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sf.config import Config
from sf.metrics.sinks.tensorboard import tag
from sf.storage.run_dir import RunDir
from sf.system.messages import say

_TIMEOUT_S = 30.0  # of each: reaching the server, and sending the rest at the end


class WandbRun:
    """One W&B run for all parts of a resumed run. Without an API key or a server it is kept in the run directory."""

    def __init__(self, run_dir: RunDir, config: Config) -> None:
        import wandb  # noqa: PLC0415  an extra, and slow to import

        self._wandb = wandb
        self._run_dir = run_dir
        self._config = config
        wandb.setup(wandb.Settings(silent=True))
        try:
            has_key = "WANDB_MODE" in os.environ or wandb.login(prompt=False, verify=False)
            self._run = self._init(os.environ.get("WANDB_MODE") or ("online" if has_key else "offline"))
        except wandb.Error as error:
            say(f"wandb: the server refused the run ({' '.join(f'{type(error).__name__}: {error}'.split())})")
            wandb.teardown()  # else the id counts as in use
            self._run = self._init("offline")
        self._run.define_metric("*", step_metric=tag("env_frames"))  # a resumed run may go back a little
        kept_in = self._run.settings.sync_dir
        if self._run.offline:
            say(f"wandb: kept in {kept_in}; to send it: wandb sync {kept_in}")
        elif self._run.url:  # none where WANDB_MODE is disabled
            say(f"wandb: {self._run.url}")

    def log(self, values: dict[str, float | Path], env_frames: int) -> None:
        """The axis is the metric of that name, since the steps of W&B must not fall."""
        videos = {
            name: self._wandb.Video(str(value), format="mp4")
            for name, value in values.items()
            if isinstance(value, Path)
        }
        self._run.log({**values, **videos})

    def finish(self, summary: dict[str, float | Path]) -> None:
        self._run.summary.update(summary)
        self._run.finish()

    def _init(self, mode: str) -> Any:
        watch = self._config.watch
        return self._wandb.init(
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
            settings=self._wandb.Settings(
                console="off",  # the display draws over itself
                silent=True,
                init_timeout=_TIMEOUT_S,
                finish_timeout=_TIMEOUT_S,
            ),
        )

    def _id(self) -> str | None:
        """Returns that of the run, or the one which an older version kept."""
        older = self._run_dir.path / "wandb" / "id"
        return older.read_text() if older.is_file() else self._run_dir.saved_id()
