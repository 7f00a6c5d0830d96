"""What a step of the campaign is told, and what it finds."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Context:
    """folder: of the step, for its runs and logs; what an unfinished step left there is still in it."""

    folder: Path
    device: str  # cuda, or cpu in a rehearsal
    is_rehearsal: bool  # as small as it can be
    share_of_time: float = 1.0  # that it may take of what would be good
    is_alone: bool = True  # no other step runs beside it

    def seconds(self, seconds: float) -> float:
        """How long to do something."""
        return 2.0 if self.is_rehearsal else self.share_of_time * seconds

    @property
    def num_cores(self) -> int:
        return 1 if self.is_rehearsal else len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Findings:
    """lines: what a reader should know, one sentence or row each. is_finished: false where the step wants to go on."""

    is_ok: bool
    lines: Sequence[str]
    data: Any = None  # for JSON
    is_finished: bool = True


@dataclass(frozen=True)
class Step:
    """function: "module:function", of a Context, which gives Findings; imported only in the process of the step."""

    name: str
    function: str
    what: str
    limit_s: float = 570.0

    def run(self, context: Context) -> Findings:
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(module), name)(context)


@dataclass
class Lines:
    """Collects what a step says, and prints it as it goes."""

    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)
