"""How many pictures each moment of play becomes on a screen."""

from __future__ import annotations


class Pace:
    """Some moments are left out, or some pictures repeated, where there are fewer or more pictures than moments."""

    def __init__(self, moments_per_s: float, pictures_per_s: float) -> None:
        self._pictures_per_moment = pictures_per_s / moments_per_s
        self._due = 0.0

    def next(self) -> int:
        """The number of pictures of the next moment."""
        self._due += self._pictures_per_moment
        num_due = int(self._due + 1e-9)
        self._due -= num_due
        return num_due
