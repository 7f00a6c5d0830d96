"""The flag of runs on several tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskOptions:
    """A part of `sf.envs.options.EnvOptions`."""

    task: str | None = None
    """tasks:FILE: play this task of the file alone, with the spaces of all, for example --override task=doom_basic of
    sf-enjoy. Default: all."""

    def check(self) -> None:
        """Any name may be that of a task."""
