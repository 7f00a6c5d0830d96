"""Pictures of a game (map, units, hit points and fog), and films of the games of an arena."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sf.envs.rendering.film import Film
from sf.envs.rts.arena import Arena
from sf.envs.rts.engine.orders import ATTACK
from sf.envs.rts.engine.state import NEUTRAL, WALL
from sf.envs.rts.engine.units import BARRACKS, BASE, FLAG, MELEE, RANGE, RESOURCE, RUNNER, TOWER
from sf.envs.rts.games import Games

_TICKS_A_PICTURE = 5  # several pictures for each decision, so that units are seen to walk
PICTURES_PER_S = 30.0
CELL = 24  # pixels
_BAR = 20  # pixels below the map: minerals or score of both, and time
_GROUND, _GRID, _WALL = (58, 74, 52), (52, 67, 47), (30, 30, 34)
_DARK = 0.45  # of the brightness, where nobody looks
_SIDES = ((70, 150, 255), (255, 90, 80), (230, 200, 80))
_RADIUS = {BASE: 0.62, BARRACKS: 0.5, RESOURCE: 0.42, MELEE: 0.34, TOWER: 0.4, FLAG: 0.3, RUNNER: 0.26}
_SMALL = 0.26  # cells, of all other kinds
_ENOUGH_MINERALS, _ENOUGH_POINTS = 500, 5  # that fill a bar


class Painter:
    """Draws games of one size, as one player sees them or, with viewer None, as nobody does: with all units."""

    def __init__(self, games: Games, viewer: int | None) -> None:
        self._games = games
        self.viewer = viewer
        self._side = games.settings.size * CELL

    def draw(self, g: int) -> np.ndarray:
        """Returns [size * CELL + 20, size * CELL, 3] uint8, north up."""
        side = self._side
        worlds = self._games.worlds
        seen = self._seen(g)
        picture = np.empty((side + _BAR, side, 3), np.float32)
        ground = np.where((worlds.ground[g] == WALL)[..., None], _WALL, _GROUND).astype(np.float32)
        ground *= np.where(seen, 1.0, _DARK)[..., None]
        picture[:side] = ground[::-1].repeat(CELL, 0).repeat(CELL, 1)
        picture[:side:CELL] = picture[:side, ::CELL] = _GRID
        units = worlds.units[g][worlds.units[g]["alive"] == 1]
        order = np.argsort(units["owner"] != NEUTRAL, kind="stable")
        for unit in units[order]:
            if self._shows(unit, units):
                self._draw_unit(picture[:side], g, unit)
        self._draw_bars(picture[side:], g)
        return picture.astype(np.uint8)

    def _seen(self, g: int) -> np.ndarray:
        """Returns [S, S] bool: cells within the sight of a unit of those who look."""
        worlds, size = self._games.worlds, self._games.settings.size
        middle = np.arange(size) + 0.5 - size / 2
        seen = np.zeros((size, size), bool)
        if self._games.settings.game == "tower":
            return ~seen
        for unit in worlds.units[g]:
            if unit["alive"] and unit["owner"] != NEUTRAL and self.viewer in (None, unit["owner"]):
                sight = worlds.kinds[unit["kind"]]["sight"]
                seen |= (middle[:, None] - unit["y"]) ** 2 + (middle - unit["x"]) ** 2 <= sight**2
        return seen

    def _shows(self, unit: np.void, units: np.ndarray) -> bool:
        """Returns whether the viewer is shown it, as by `sf.envs.rts.engine.places.sees`. units: that are there."""
        if self.viewer in (None, unit["owner"]) or unit["kind"] in (BASE, FLAG) or self._games.settings.game == "tower":
            return True
        eyes = units[units["owner"] == self.viewer]
        distance2 = (eyes["x"] - unit["x"]) ** 2 + (eyes["y"] - unit["y"]) ** 2
        return bool((distance2 <= self._games.worlds.kinds["sight"][eyes["kind"]] ** 2).any())

    def _pixel(self, x: float, y: float) -> tuple[float, float]:
        half = self._games.settings.size / 2
        return (x + half) * CELL, (half - y) * CELL

    def _draw_unit(self, picture: np.ndarray, g: int, unit: np.void) -> None:
        kind, owner = int(unit["kind"]), int(unit["owner"])
        x, y = self._pixel(unit["x"], unit["y"])
        radius = _RADIUS.get(np.int64(kind), _SMALL) * CELL
        top, left = max(int(y - radius) - 1, 0), max(int(x - radius) - 1, 0)
        patch = picture[top : int(y + radius) + 3, left : int(x + radius) + 3]
        rows, columns = np.ogrid[: patch.shape[0], : patch.shape[1]]
        dx, dy = columns + left + 0.5 - x, rows + top + 0.5 - y
        inside = _shape(kind, dx / radius, dy / radius)
        patch[inside] = _SIDES[owner]
        patch[inside & ~_shape(kind, dx / (radius - 2), dy / (radius - 2))] = (20, 20, 20)
        if kind in (MELEE, BASE, TOWER):
            patch[(dx**2 + dy**2) < (0.4 * radius) ** 2] = (20, 20, 20)
        if unit["load"] > 0:
            patch[(dx**2 + dy**2) < (0.45 * radius) ** 2] = _SIDES[NEUTRAL]
        most = self._games.worlds.kinds[kind]["hp"]
        if kind != FLAG:
            self._draw_hp(picture, x, y - radius - 4, radius, unit["hp"] / most)
        if unit["order"] == ATTACK and unit["ready_in"] > self._games.worlds.kinds[kind]["cooldown"] - 5:
            target = self._games.worlds.units[g, unit["target"]]
            _line(picture, (x, y), self._pixel(target["x"], target["y"]), (255, 240, 160))

    @staticmethod
    def _draw_hp(picture: np.ndarray, x: float, y: float, radius: float, share: float) -> None:
        top, left, width = max(int(y), 0), max(int(x - radius), 0), int(2 * radius)
        picture[top : top + 3, left : left + width] = (40, 10, 10)
        picture[top : top + 3, left : left + round(width * share)] = (90, 220, 90)

    def _draw_bars(self, picture: np.ndarray, g: int) -> None:
        """Minerals of player 0 from the left and of player 1 from the right, or scores; below, the time."""
        picture[:] = (24, 24, 28)
        half = self._side // 2 - 4
        field, full = (
            ("score", _ENOUGH_POINTS) if self._games.settings.game == "flag" else ("minerals", _ENOUGH_MINERALS)
        )
        for player in range(2):
            share = min(self._games.worlds.players[g, player][field] / full, 1.0)
            if self.viewer in (None, player) or field == "score":
                wide = round(half * share)
                across = slice(0, wide) if player == 0 else slice(self._side - wide, self._side)
                picture[3:11, across] = _SIDES[player]
        time = self._games.ticks[g] / self._games.settings.most_ticks
        picture[14:17, : round(self._side * time)] = (150, 150, 150)


class ArenaCamera:
    """Films the games of an arena: it is an `sf.envs.rendering.film.Camera`, and the watcher of its arena."""

    def __init__(self, arena: Arena) -> None:
        self._games = arena.games
        self._painter = Painter(arena.games, 0 if arena.num_players == 1 else None)
        self.films = [Film() for _ in range(arena.games.num)]
        self._returns = np.zeros(arena.games.num * arena.num_players)
        self.ticks_a_picture = _TICKS_A_PICTURE
        arena.watcher = self

    def began(self, which: np.ndarray) -> None:
        """These games [E] have begun."""
        for g in np.flatnonzero(which).tolist():
            self.films[g].begin(self._painter.draw(g))

    def moved(self, which: np.ndarray) -> None:
        """These games [E] have gone on."""
        for g in np.flatnonzero(which).tolist():
            self.films[g].add(self._painter.draw(g))

    def paid(self, rewards: np.ndarray, ended: np.ndarray) -> None:
        """Add the rewards [E, P] of a step to the returns of the players. ended: [E], of the games that begin anew."""
        self._returns = np.where(ended[:, None], 0.0, self._returns.reshape(rewards.shape) + rewards).ravel()

    def show_to(self, player: int) -> None:
        """From now on the pictures show what this player sees. They are of a single game."""
        self._painter.viewer = player
        self.films[0].replace(self._painter.draw(0))

    def returns(self) -> Sequence[float]:
        return self._returns.tolist()


def _shape(kind: int, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Returns whether a point is in the shape of a unit: in units of its radius from the middle, y downwards."""
    if kind in (BASE, BARRACKS, TOWER):
        return np.maximum(abs(dx), abs(dy)) < 0.9
    if kind == RESOURCE:
        return abs(dx) + abs(dy) < 1.0
    if kind == RANGE:
        return (dy < 0.8) & (abs(dx) < (dy + 1.1) * 0.55)
    if kind == FLAG:
        return (abs(dx + 0.6) < 0.2) | ((abs(dy + 0.4) < 0.5) & (dx > -0.6) & (dx < 0.9))
    return dx**2 + dy**2 < 1.0


def _line(
    picture: np.ndarray, start: tuple[float, float], end: tuple[float, float], colour: tuple[int, int, int]
) -> None:
    num = int(max(abs(end[0] - start[0]), abs(end[1] - start[1]))) + 1
    columns = np.linspace(start[0], end[0], num).astype(int).clip(0, picture.shape[1] - 1)
    rows = np.linspace(start[1], end[1], num).astype(int).clip(0, picture.shape[0] - 1)
    picture[rows, columns] = colour
