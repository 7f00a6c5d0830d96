"""What the screen shows of episodes: the steps of a group as panels, and panels as pictures in real time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np

from sf.evaluation.pictures.overlay import Grid, Panel
from sf.evaluation.play.episodes import Played
from sf.metrics.readable import number

_MAX_NUMBERS = 4  # in one caption


class Stage:
    """The panels of E environments with A agents each. One that has played all its matches shows its result."""

    def __init__(self, env: str, names: Sequence[str], lineups: np.ndarray, num_envs: int, num_views: int) -> None:
        """names: of the policies. lineups: [M, A] of all matches. num_views: of an environment, 1 or A."""
        self._env = env
        self._names = names
        self._lineups = lineups
        self._num_envs = num_envs
        num_agents = lineups.shape[1]
        k = num_agents // num_views
        self._actors_of = [range(v * k, (v + 1) * k) for v in range(num_envs * num_views)]
        self._env_of = np.repeat(np.arange(num_envs), num_views)  # of each view
        self._match_idx = np.arange(num_envs)  # [E] that is played
        self._num_steps = np.zeros(num_envs * num_agents, np.int64)  # [N]
        self._latest: dict[int, Played] = {}  # by actor
        self._panels: list[Panel | None] = [None] * len(self._actors_of)

    def begin(self, pictures: Sequence[np.ndarray]) -> list[Panel]:
        """The panels where an episode begins. pictures: of each view, as `sf.envs.group.PlayedGroup` has them."""
        num_actors = len(self._num_steps)
        for v, picture in enumerate(pictures):
            if not self._is_over(v):
                text = self._text(v, [0.0] * num_actors, np.full(num_actors, np.nan))
                self._panels[v] = Panel(picture, self._title(v), text)
        return self.panels()

    def step(
        self,
        pictures: Sequence[Sequence[np.ndarray]],
        returns: Sequence[float],
        values: np.ndarray,
        played: Sequence[Played],
        match_idx: np.ndarray,
    ) -> Iterator[list[Panel]]:
        """Yields the panels of each moment of a step. The caller has to take them all.

        pictures, returns: as `sf.envs.RenderedGroup` has them after the step. values: [N]. played: the episodes that
        ended with it. match_idx: [E] of the matches that are played after it.
        """
        num_agents = self._lineups.shape[1]
        ended = {episode.match_idx % self._num_envs * num_agents + episode.agent_idx: episode for episode in played}
        returns = [ended[n].episode_return if n in ended else r for n, r in enumerate(returns)]
        live = [v for v in range(len(pictures)) if not self._is_over(v)]
        for v in live:
            has_stepped = pictures[v] or not ended.keys().isdisjoint(self._actors_of[v])
            self._num_steps[self._actors_of[v]] += bool(has_stepped)
        captions = {v: (self._title(v), self._text(v, returns, values)) for v in live}
        for n, episode in ended.items():
            self._latest[n] = episode
            self._num_steps[n] = 0
        self._match_idx = match_idx
        # A view whose episode ended has fewer pictures than others, and shows its last one meanwhile.
        num_moments = max(1, *(len(of_view) for of_view in pictures))
        for moment in range(num_moments):
            for v in live:
                before = self._panels[v]
                shown = pictures[v][: moment + 1] or ([before.picture] if before else [])
                result = self._result(v) if moment == num_moments - 1 and self._is_over(v) else ()
                if shown:
                    self._panels[v] = Panel(shown[-1], *captions[v], result)
            yield self.panels()

    def panels(self) -> list[Panel]:
        """Returns the panels as they are now."""
        shown = next(panel for panel in self._panels if panel is not None)
        nothing = Panel(np.zeros_like(shown.picture), self._env, "")  # an agent that has not come yet
        return [panel or nothing for panel in self._panels]

    def _is_over(self, view: int) -> bool:
        return bool(self._match_idx[self._env_of[view]] >= len(self._lineups))

    def _title(self, view: int) -> str:
        actors = self._actors_of[view]
        num_agents = self._lineups.shape[1]
        match_idx = min(self._match_idx[self._env_of[view]], len(self._lineups) - 1)
        who = self._env
        if len(self._names) > 1:
            who = " vs. ".join(self._names[self._lineups[match_idx, n % num_agents]] for n in actors)
        if num_agents == 1:
            return f"{who}   episode {match_idx + 1} of {len(self._lineups)}"
        agent = f"   agent {actors[0] % num_agents + 1}" if len(actors) == 1 else ""
        return f"{who}{agent}   match {match_idx + 1} of {len(self._lineups)}"

    def _text(self, view: int, returns: Sequence[float], values: np.ndarray) -> str:
        actors = self._actors_of[view]
        num_steps = max(self._num_steps[actors])
        text = f"return {_numbers([returns[n] for n in actors])}   step {num_steps}"
        known = [float(values[n]) for n in actors if not np.isnan(values[n])]  # not of players that predict none
        text += f"   value {_numbers(known)}" if known else ""
        latest = [self._latest[n].episode_return for n in actors if n in self._latest]
        return f"{text}   before {_numbers(latest)}" if latest else text

    def _result(self, view: int) -> tuple[str, ...]:
        latest = [self._latest[n] for n in self._actors_of[view] if n in self._latest]
        if not latest:
            return ("never in the match",)
        num_steps = max(episode.num_steps for episode in latest)
        return (
            f"return {_numbers([episode.episode_return for episode in latest])}",
            f"{num_steps} step{'s' * (num_steps > 1)}",
        )


def _numbers(values: Sequence[float]) -> str:
    """All of them, or their mean where they are many."""
    if len(values) > _MAX_NUMBERS:
        return f"{number(float(np.mean(values)))} each"
    return ", ".join(number(value) for value in values)


class Screen(Protocol):
    """Shows pictures: see `sf.tools.commands.play.window` and `sf.evaluation.pictures.video`."""

    limit: tuple[int, int]  # width and height that fit
    max_fps: float
    is_full: bool  # of a file that has become as long as it may

    def open(self, size: tuple[int, int], fps: float, title: str) -> None: ...

    def show(self, picture: np.ndarray) -> bool:
        """Returns whether to go on."""
        ...

    def finish(self) -> bool:
        """Returns whether it leaves a file."""
        ...

    def close(self) -> None: ...


@dataclass
class Projector:
    """Leaves out moments, or repeats pictures, where the screen has fewer or more pictures a second than moments.

    num_views: of an environment. limit: of width and height. goes_on: asked before each picture. seconds, size: of what
    was shown so far; the size is width and height.
    """

    screen: Screen
    _: KW_ONLY
    moments_per_s: float
    fps: float
    num_views: int
    limit: tuple[int, int]
    title: str
    goes_on: Callable[[], bool]
    _due: float = 0.0  # pictures
    _grid: Grid | None = None
    _num_pictures: int = 0

    @property
    def seconds(self) -> float:
        return self._num_pictures / self.fps

    @property
    def size(self) -> tuple[int, int]:
        assert self._grid is not None, "nothing was shown"
        return self._grid.size

    def show(self, panels: Sequence[Panel]) -> bool:
        """Returns whether to go on."""
        self._due += self.fps / self.moments_per_s
        num_due = int(self._due + 1e-9)
        self._due -= num_due
        return self._show(panels, num_due)

    def hold(self, panels: Sequence[Panel], seconds: float) -> None:
        """Leave time to read what is there."""
        self._show(panels, max(1, round(seconds * self.fps)))

    def _show(self, panels: Sequence[Panel], num_pictures: int) -> bool:
        if num_pictures == 0:
            return True
        if self._grid is None:
            height, width, _ = panels[0].picture.shape
            self._grid = Grid(len(panels), self.num_views, (height, width), self.limit)
            self.screen.open(self._grid.size, self.fps, self.title)
        picture = self._grid.draw(panels)
        for _ in range(num_pictures):
            if not self.goes_on():
                return False
            self._num_pictures += 1
            if not self.screen.show(picture):
                return False
        return True
