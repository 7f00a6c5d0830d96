"""One agent of a match: its engine, what it sees, and what it is rewarded for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import vizdoom

from sf.envs.doom.controls import FULL_HEADS, MEASUREMENTS, View
from sf.envs.doom.matches.tasks import MatchSetup
from sf.envs.doom.shaping import COUNTERS, NO_SHAPING, Shaper
from sf.envs.group import Episode


class Player:
    """`game` is for the match to start and to step; the rest is called in between, in the order of the methods."""

    def __init__(self, setup: MatchSetup, shaped: bool, seed: int, make_engine: Callable[[], vizdoom.DoomGame]) -> None:
        self._shaped = shaped
        shaping = setup.shaping if shaped else NO_SHAPING
        self._view = View(FULL_HEADS, MEASUREMENTS, [*COUNTERS, "DEAD", *(term.variable for term in shaping.terms)])
        self._shaper = Shaper(shaping, self._view.variables)
        self._counter_idxs = [self._view.variables.index(name) for name in COUNTERS]
        self.game = make_engine()
        if setup.wad_is_complete:
            self.game.set_doom_game_path(str(setup.wad))
        else:
            self.game.set_doom_scenario_path(str(setup.wad))
        self.game.set_doom_map(setup.map_name.lower())
        self.game.set_mode(vizdoom.Mode.PLAYER)
        self.game.set_episode_timeout(0)
        self._view.configure(self.game)
        self.game.set_seed(seed)

    def begin(self, obs: Mapping[str, np.ndarray]) -> None:
        """Write the first observation of an episode."""
        values = self._view.observe(self._state(), obs)
        self._shaper.begin(values)
        self._first_counts = self._counts = self._read_counters(values)
        # Bots may have some frags already: they killed as they came in.
        self._first_frags = self.game.get_server_state().players_frags
        self._shaped_return = 0.0

    def act(self, choices: Sequence[int]) -> None:
        """Hold the buttons of one option a head from now on."""
        self.game.set_action(self._view.buttons(choices))

    def observe(self, obs: Mapping[str, np.ndarray], is_last: bool) -> float:
        """Write the observation at the end of a step, and return the learner's reward."""
        values = self._view.observe(self._state(), obs)
        before, self._counts = self._counts, self._read_counters(values)
        if self._shaped:
            shaped_reward = self._shaper.reward(values)
            reward = 0.0 if is_last else shaped_reward
        else:
            reward = self._counts[0] - before[0]
        self._shaped_return += reward
        return reward

    def set_shaping(self, weights: Sequence[float]) -> None:
        self._shaper.set_weights(weights)

    @property
    def frags(self) -> float:
        """Returns the frags in the present episode."""
        return self._counts[0] - self._first_counts[0]

    @property
    def number(self) -> int:
        """Returns the number of this player in the game."""
        return int(self.game.get_game_variable(vizdoom.GameVariable.PLAYER_NUMBER))

    def frags_of_all(self) -> dict[int, float]:
        """Returns the frags of each player in the present episode, by its number, bots included."""
        server = self.game.get_server_state()
        return {
            player: float(now - first)
            for player, (plays, now, first) in enumerate(
                zip(server.players_in_game, server.players_frags, self._first_frags, strict=True)
            )
            if plays
        }

    def episode(
        self,
        actor_idx: int,
        num_steps: int,
        num_frames: int,
        winning_is_objective: bool,
        teams: Mapping[int, int] = MappingProxyType({}),
    ) -> Episode:
        """Returns the score of this player. Frags are kills, less the times that the player killed itself.

        teams: of the players that are in one, by their numbers in the game. The team with the most frags wins.
        """
        _, deaths, hits, damage = (now - first for now, first in zip(self._counts, self._first_counts, strict=True))
        frags_of = self.frags_of_all()
        frags = frags_of[self.number]
        scores = defaultdict[tuple[str, int], float](float)
        for number, own in frags_of.items():
            scores[_side(number, teams)] += own
        score = scores.pop(_side(self.number, teams))
        best_other = max(scores.values())
        win = float(score > best_other)
        stats = {
            "frags": frags,
            "deaths": deaths,
            "kd": frags / max(deaths, 1.0),
            "hits": hits,
            "damage": damage,
            "win": win,
            "tie": float(score == best_other),
            "true_objective": win if winning_is_objective else frags,
            "shaped_return": self._shaped_return,
        }
        return Episode(actor_idx, frags, num_steps, num_frames, stats)

    def _state(self) -> vizdoom.GameState:
        state = self.game.get_state()
        if state is None:
            raise RuntimeError("the map has ended before the time of the match was over: choose another doom_map")
        return state

    def _read_counters(self, values: Sequence[float]) -> list[float]:
        return [values[idx] for idx in self._counter_idxs]


def _side(number: int, teams: Mapping[int, int]) -> tuple[str, int]:
    """Returns the team of a player of the game, or the player itself if it is in none."""
    return ("team", teams[number]) if number in teams else ("player", number)
