"""Films a match: each picture is the text that OpenSpiel writes of a position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel

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
        self._viewer: int | None = None  # the player for whom the pictures are; None: they show everything
        self.films = [Film()]

    def start(self) -> None:
        super().start()
        self.films[0].begin(self._draw())

    def play(self, choices: Sequence[int], first: int = 0) -> list[float]:
        rewards = super().play(choices, first)
        self.films[0].add(self._draw())
        return rewards

    def moves(self, player: int) -> Mapping[int, str]:
        """The actions that a player may choose now, as OpenSpiel writes them."""
        return {action: self._state.action_to_string(player, action) for action in self.legal(player)}

    def show_to(self, player: int) -> None:
        """From now on the pictures show what this player knows. What was hidden is shown when a game is over."""
        self._viewer = player
        self.films[0].replace(self._draw())

    def _draw(self) -> np.ndarray:
        return self._painter.draw(str(self) if self.is_over or self._viewer is None else self._text_for(self._viewer))

    def _text_for(self, player: int) -> str:
        kind = self._game.get_type()
        if self.num_players > 1 and kind.information == pyspiel.GameType.Information.IMPERFECT_INFORMATION:
            if kind.provides_information_state_string:
                return self._state.information_state_string(player)
            if kind.provides_observation_string:
                return self._state.observation_string(player)
        return str(self)
