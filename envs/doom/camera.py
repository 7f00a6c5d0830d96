"""Films games of Doom at 640x480 and at every tic.

An engine draws at one resolution only. So beside a game of one player runs another with the same seed and the same
actions, which is therefore the same game, and is filmed. A match cannot be played twice: there the policies see every
fourth pixel of what is filmed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, SupportsInt

import numpy as np
import vizdoom

from sf.envs.doom.game import Game, Rows
from sf.envs.doom.matches.match import Match
from sf.envs.doom.matches.stand_ins import MatchWithStandIns
from sf.envs.group import Episode
from sf.envs.rendering.film import Film

# Of each 4x4 pixels at 640x480, the one that comes closest to what the engine draws at 160x120.
ROW, COLUMN = 3, 0


class SmallState(NamedTuple):
    """Holds what is read of a `vizdoom.GameState`."""

    screen_buffer: np.ndarray  # [120, 160, 3]
    game_variables: np.ndarray | None
    depth_buffer: np.ndarray | None  # [120, 160]
    labels_buffer: np.ndarray | None
    automap_buffer: np.ndarray | None  # [120, 160, 3]


class FilmedEngine(vizdoom.DoomGame):
    """An engine that draws 640x480, and shows its owner 160x120. It is asked for the state once a step."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn: list[np.ndarray] = []

    def drawn(self) -> list[np.ndarray]:
        """Returns the pictures [480, 640, 3] since the last call."""
        drawn, self._drawn = self._drawn, []
        return drawn

    def load_config(self, config: str) -> bool:
        """Show health and ammunition, too: a scenario is filmed beside the game that the policy sees."""
        loaded = super().load_config(config)
        self.set_render_hud(True)
        return loaded

    def set_screen_resolution(self, resolution: vizdoom.ScreenResolution) -> None:
        super().set_screen_resolution(vizdoom.ScreenResolution.RES_640X480)

    def make_action(self, action: object, tics: SupportsInt = 1) -> float:
        reward = super().make_action(action, 1)
        for _ in range(int(tics) - 1):
            if self.is_episode_finished():
                break
            self._draw()
            reward += super().make_action(action, 1)
        return reward

    def advance_action(self, tics: SupportsInt = 1, update_state: bool = True) -> None:
        super().advance_action(tics, True)
        if not update_state:
            self._draw()

    def get_state(self) -> SmallState | None:  # type: ignore[override]  # all that `View` reads of one
        state = super().get_state()
        if state is None:
            return None
        self._drawn.append(state.screen_buffer.copy())
        buffers = (state.depth_buffer, state.labels_buffer, state.automap_buffer)
        return SmallState(_small(state.screen_buffer), state.game_variables, *map(_small, buffers))

    def _draw(self) -> None:
        state = super().get_state()
        if state is not None:
            self._drawn.append(state.screen_buffer.copy())


def _small(buffer: np.ndarray | None) -> Any:
    """Returns what an engine would draw at 160x120, from [480, 640] or [480, 640, 3]; None of None."""
    return None if buffer is None else np.ascontiguousarray(buffer[ROW::4, COLUMN::4])


class FilmedGame(Game):
    """A `Game`, and the films of its players."""

    def __init__(self, start: Callable[..., Game], is_match: bool, seed: int) -> None:
        """start: starts a game from its seed, and what makes its engines. Raises as that does."""
        self._engines: list[FilmedEngine] = []
        with ExitStack() as started:
            self._played = start(seed, self._make_engine if is_match else vizdoom.DoomGame)
            started.callback(self._played.close)
            self._twin = None if is_match else start(seed, self._make_engine)
            if self._twin is not None:
                started.callback(self._twin.close)
            self._started = started.pop_all()
        self._twin_obs: Rows = []
        self._is_dropped = False  # the episode that the next reset ends: it has had no step
        self._watched = self._shown()  # by the films, an agent each
        self.films = [Film() for _ in self._watched]

    def returns(self) -> list[float]:
        return self._played.returns()

    def reset(self, obs: Rows) -> None:
        self._played.reset(obs)
        if self._twin is not None:
            self._twin_obs = [{key: np.empty_like(row) for key, row in rows.items()} for rows in obs]
            self._twin.reset(self._twin_obs)
        self._watched = self._shown()
        drawn = {engine: engine.drawn() for engine in self._engines}
        for film, engine in zip(self.films, self._watched, strict=True):
            show = film.replace if self._is_dropped else film.begin
            show(drawn[engine][-1])
        self._is_dropped = False

    def begins_anew(self, choices: Sequence[Sequence[int]]) -> bool:
        self._is_dropped = self._played.begins_anew(choices)
        return self._is_dropped

    def step(self, choices: Sequence[Sequence[int]], obs: Rows) -> tuple[list[float], bool, bool]:
        result = self._played.step(choices, obs)
        if self._twin is not None:
            rewards, *ended = self._twin.step(choices, self._twin_obs)
            same = np.allclose(rewards, result[0]) and ended == [*result[1:]]  # a reward of each tic is rounded
            assert same, "the game that is filmed is not the one that is played"
        drawn = {engine: engine.drawn() for engine in self._engines}
        for film, engine in zip(self.films, self._watched, strict=True):
            for picture in drawn[engine]:
                film.add(picture)
        return result

    def set_shaping(self, agent_idx: int, weights: Sequence[float]) -> None:
        self._played.set_shaping(agent_idx, weights)

    def set_options(self, values: Mapping[str, float]) -> None:
        self._played.set_options(values)

    def episodes(self, first_actor_idx: int) -> list[Episode]:
        return self._played.episodes(first_actor_idx)

    def close(self) -> None:
        self._started.close()

    def _shown(self) -> Sequence[FilmedEngine]:
        """Returns the engine that shows what each agent sees in this episode."""
        if isinstance(self._played, Match | MatchWithStandIns):
            return [engine for engine in self._played.shown() if isinstance(engine, FilmedEngine)]
        return self._engines

    def _make_engine(self) -> FilmedEngine:
        self._engines.append(FilmedEngine())
        return self._engines[-1]
