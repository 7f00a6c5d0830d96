"""Films a match: each picture is the text that OpenSpiel writes of a position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sf.envs.openspiel.match import Match
from sf.envs.rendering.film import Film
from sf.envs.rendering.text_pictures import TextPainter

PICTURES_PER_S = 2.0  # a position takes a while to read


class FilmedMatch(Match):
    """An `sf.envs.rendering.film.Camera` of the match that it is."""

    def __init__(self, env_id: str, *args: Any) -> None:
        """args: of a match."""
        super().__init__(env_id, *args)
        self._painter = TextPainter(env_id)
        self.films = [Film()]

    def start(self) -> None:
        super().start()
        self.films[0].begin(self._painter.draw(str(self)))

    def play(self, choices: Sequence[int]) -> list[float]:
        rewards = super().play(choices)
        self.films[0].add(self._painter.draw(str(self)))
        return rewards
