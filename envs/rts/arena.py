"""Episodes of a group of games, for players that are asked: the group and the single environments are made of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sf.envs.rts.controls import controls
from sf.envs.rts.engine.state import DRAW, NOBODY
from sf.envs.rts.engine.units import UNITS, Unit
from sf.envs.rts.games import Games
from sf.envs.rts.replay import Recorder
from sf.envs.rts.settings import Settings

LONGEST_HELP = 1000  # ticks that the AI plays at the beginning of an episode, where there is a curriculum


class Arena:
    """E games with P players each that are asked every `frame_skip` ticks; the others are AIs."""

    def __init__(
        self, settings: Settings, seeds: Sequence[int], num_players: int = 1, units: tuple[Unit, ...] = UNITS
    ) -> None:
        self.settings = settings
        self.controls = controls(settings, units)
        self.num_players = num_players
        self.games = Games(settings, seeds, num_players, units)
        self._rngs = [random.Random(seed) for seed in seeds]
        self._num_begun = [0] * len(seeds)
        self._opponents = [""] * len(seeds)
        self._recorders = [Recorder(settings, num_players) for _ in seeds] if settings.replays else []
        shape = (len(seeds), num_players)
        self._num_planes = len(self.controls.plane_names)
        side = settings.size
        self._now = np.zeros((*shape, self._num_planes, side, side), np.float32)
        history = self._num_planes * settings.history
        self.planes = self._now if settings.history == 1 else np.zeros((*shape, history, side, side), np.float32)
        self.masks = np.zeros((*shape, sum(self.controls.head_sizes) if self.controls.has_mask else 0), np.int8)

    def begin(self, which: np.ndarray) -> None:
        """Begin the games [E] anew, and look."""
        helped = np.zeros(len(which), np.int64)
        for g in np.flatnonzero(which).tolist():
            mixture = self.settings.mixture
            if self.num_players == 1:
                self._opponents[g] = self._rngs[g].choices(list(mixture), list(mixture.values()))[0]
                self.games.set_ai(g, 1, self._opponents[g])
            helped[g] = self._rngs[g].randint(0, self._longest_help(g))
            self._num_begun[g] += 1
        for helper in set(self._helpers(which)):
            of_helper = which & np.array([self._helper(g) == helper for g in range(len(which))])
            self.games.begin(of_helper, helped, helper)
        while (ended := which & (self.games.winner != NOBODY)).any():  # while the AI still played
            self.games.begin(ended)
        for g, recorder in enumerate(self._recorders):
            if which[g]:
                recorder.begin(self.games.snapshot(g))
        self.look(which)

    def step(self, choices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Commands [E, P, H] -> what each player was paid [E, P], and which games have ended [E]; those must begin anew
        before the next step.
        """
        for recorder, each in zip(self._recorders, choices, strict=False):
            recorder.add(each)
        rewards, _ = self.games.advance(np.ascontiguousarray(choices, np.int64), self.settings.skip)
        ended = self.games.winner != NOBODY
        for g, recorder in enumerate(self._recorders):
            if ended[g]:
                recorder.finish(self.games.snapshot(g)).save_in(Path(str(self.settings.replays)))
        return rewards[:, : self.num_players], ended

    def look(self, anew: np.ndarray | None = None) -> None:
        """Write `planes` and `masks`. anew: [E], of which there is no history."""
        self.games.observe(self.controls.plane_of, self._now, self.masks)
        if self.planes is self._now:
            return
        c = self._num_planes
        self.planes[:, :, c:] = self.planes[:, :, :-c].copy()
        self.planes[:, :, :c] = self._now
        if anew is not None:
            self.planes[anew, :, c:] = 0.0

    def stats(self, g: int, player: int) -> dict[str, float]:
        """Of a game that has ended."""
        winner, own = int(self.games.winner[g]), self.games.worlds.players[g, player]
        won = 0.5 if winner == DRAW else float(winner == player)
        found = {"won": won, "true_objective": won, "ticks": float(self.games.ticks[g]), "kills": float(own["kills"])}
        if self.settings.game == "tower":
            found["leaks"] = float(own["leaks"])
        if self.settings.game == "flag":
            found["score"] = float(own["score"])
        if self._opponents[g] and len(self.settings.mixture) > 1:
            found[f"won_against_{self._opponents[g]}"] = won
        return found

    def _longest_help(self, g: int) -> int:
        if not self.settings.curriculum or self.num_players > 1:
            return 0
        return int(LONGEST_HELP * max(0.0, 1.0 - self._num_begun[g] / self.settings.curriculum))

    def _helper(self, g: int) -> str:
        """The AI that plays for player 0 in a curriculum: that of the opponent."""
        return self._opponents[g] or "nobody"

    def _helpers(self, which: np.ndarray) -> list[str]:
        return [self._helper(g) for g in np.flatnonzero(which).tolist()]
