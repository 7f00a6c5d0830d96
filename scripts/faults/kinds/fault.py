"""One thing that a campaign does to a run of certain tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

ONE_POLICY = ("toy", "toy_sync", "own", "atari", "doom")
POPULATIONS = ("pair", "population")
LEAGUE = ("league",)
ALL = (*ONE_POLICY, *POPULATIONS, *LEAGUE)
TOY = ("toy", "toy_sync")
SWEEP = ("sweep",)

Harm = Callable[[Any, Random], None]
"""Is called with a session of the task and the random numbers of the campaign."""


@dataclass(frozen=True)
class Fault:
    """do: does its harm and waits until the run has noticed; the campaign sees whether it then goes on as if nothing
    had been. One that ends the run checks how it ended; the campaign resumes it."""

    name: str
    do: Harm
    tasks: tuple[str, ...] = ONE_POLICY
    is_possible: Callable[[], bool] = lambda: True  # on this machine
