"""Finds the settings that train fastest on this machine: a hill climb over a few of them, one at a time.

Every trial is a real run of some seconds. Each setting is doubled or halved for as long as that helps by more than the
noise. At the end the start and the best are measured once more, one after the other, because a shared machine drifts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sf.config import Config

Settings = Mapping[str, int]
"""Values of `TUNED` flags."""

TUNED = ("num_envs_per_worker", "batch_size", "num_workers", "policy_workers_per_policy")
"""In the order in which they are tried: what helps most often first."""

NOTABLE = 1.03  # a greater ratio of frames per second is more than noise


class Choice(NamedTuple):
    """The result of measuring the start and the best of a climb once more."""

    settings: Settings
    ratio: float | None  # to the start; None where they are the start, or nothing was measured of it
    why: str | None = None  # they are not the best of the climb


@dataclass
class Search:
    """The trials of a hill climb.

    measure: frames per second, or ValueError where the settings do not work, which is None among the trials.
    """

    measure: Callable[[Settings], float]
    is_time_up: Callable[[], bool]
    trials: list[tuple[Settings, float | None]] = field(default_factory=list)

    def climb(self, start: Settings, names: Iterable[str]) -> Settings:
        """The best settings found from `start` on, changing those in `names`. Raises ValueError where `start` fails."""
        best = start
        self.trials.append((start, self.measure(start)))
        found_better = True
        while found_better and not self.is_time_up():
            found_better = False
            for name in names:
                for factor in (2.0, 0.5):
                    before = best
                    best = self._follow(best, name, factor)
                    found_better |= best is not before
                    if best is not before:
                        break  # the other way is where it came from
        return best

    def confirm(self, start: Settings, best: Settings) -> Choice:
        """Measure both again, in turn. Raises ValueError where one of them does not work then."""
        fps_of_start, fps_of_best = self.measure(start), self.measure(best)
        if fps_of_best < fps_of_start:
            why = f"what seemed to be faster was noise ({fps_of_best / fps_of_start:.2f} times the start, in turn)"
            return Choice(start, None, why)
        return Choice(best, fps_of_best / fps_of_start if fps_of_start else None)

    def _follow(self, best: Settings, name: str, factor: float) -> Settings:
        """Change one setting in one direction for as long as that helps."""
        while not self.is_time_up():
            value = int(best[name] * factor)
            changed = {**best, name: value}
            if value < 1 or self._was_tried(changed):
                break
            try:
                fps: float | None = self.measure(changed)
            except ValueError:
                fps = None
            self.trials.append((changed, fps))
            if not fps or fps < NOTABLE * (self._fps(best) or 0.0):
                break
            best = changed
        return best

    def _was_tried(self, settings: Settings) -> bool:
        return any(dict(tried) == dict(settings) for tried, _ in self.trials)

    def _fps(self, settings: Settings) -> float | None:
        return next(fps for tried, fps in self.trials if dict(tried) == dict(settings))


def settings_of(config: Config, num_workers: int) -> Settings:
    """The present values of `TUNED`. num_workers: what the run would have on this machine."""
    flags = config.flat()
    return {name: num_workers if name == "num_workers" else flags[name] for name in TUNED}
