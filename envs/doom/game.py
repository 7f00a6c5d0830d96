"""The games that a group of Doom games steps, and the one of a single player: its engine, observations and rewards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import vizdoom

from sf.envs.doom.controls import View
from sf.envs.doom.engine import start_engine
from sf.envs.doom.scenarios import Scenario, load_config
from sf.envs.doom.shaping import NO_SHAPING, Shaper
from sf.envs.group import Episode

Rows = Sequence[Mapping[str, np.ndarray]]
"""The arrays that receive the observations of one game, one mapping for each agent."""


class Game(Protocol):
    """Plays, for a group or a camera: a scenario with one agent (`DoomEnv`), or a match with one or more (`Match`)."""

    def reset(self, obs: Rows) -> None:
        """Start the next episode and write its first observations."""

    def begins_anew(self, choices: Sequence[Sequence[int]]) -> bool:
        """Returns whether these choices, made before any `step`, ask for another episode, which `reset` begins."""
        return False

    def step(self, choices: Sequence[Sequence[int]], obs: Rows) -> tuple[list[float], bool, bool]:
        """Hold the buttons of one option a head and agent for `frameskip` tics, or fewer up to the time limit.

        Returns (learner's rewards, terminated, truncated), and writes the observations unless terminated: then there
        are none. Raises a ViZDoom exception where an engine has died or hangs.
        """
        ...

    def set_shaping(self, agent_idx: int, weights: Sequence[float]) -> None: ...

    def set_options(self, values: Mapping[str, float]) -> None:
        """Let the next episodes begin with these values. Only matches have options."""
        return

    def episodes(self, first_actor_idx: int) -> list[Episode]:
        """Returns the episode that has just ended, one record for each agent. Call it before `reset`."""
        ...

    def returns(self) -> list[float]:
        """Returns what each agent has in the present episode: its return, or its frags in a match."""
        ...

    def close(self) -> None:
        """End all engines, those that hang as well. Does nothing where they have ended already."""


class DoomEnv(Game):
    """An engine that plays a scenario. Call `reset` first, and after each episode that ended.

    An episode that ends by itself (the player dies, the map's script ends it) is terminated; one that
    reaches the time limit is truncated, even if the task is to survive until then. The policy sees
    no clock, so to it the limit is a cut through a game that would go on, and the value of the last frame
    is the right bootstrap. So the limit is kept here: an episode that ViZDoom ends has no last frame.
    """

    def __init__(
        self,
        scenario: Scenario,
        config: Path,
        frameskip: int,
        shaped: bool,
        seed: int,
        make_engine: Callable[[], vizdoom.DoomGame] = vizdoom.DoomGame,
    ) -> None:
        """seed: 32 bits; the engine draws the seed of each episode from it.

        Raises RuntimeError where the engine does not start.
        """
        self._frameskip = frameskip
        self._reward_scale = scenario.reward_scale
        self._kills_are_objective = scenario.kills_are_objective
        shaping = scenario.shaping if shaped else NO_SHAPING
        variables = [term.variable for term in shaping.terms]
        self._view = View(scenario.heads, scenario.measurements, variables, scenario.buffers)
        self._shaper = Shaper(shaping, self._view.variables)

        self._game = make_engine()
        load_config(self._game, config)
        self._time_limit = self._game.get_episode_timeout() or sys.maxsize  # tics
        self._game.set_episode_timeout(0)
        self._game.set_mode(vizdoom.Mode.PLAYER)  # a file may ask for a spectator's, or for real time
        self._view.configure(self._game)
        self._game.set_seed(seed)
        start_engine(self._game)
        self._begin_episode()

    def reset(self, obs: Rows) -> None:
        if self._num_steps > 0:  # an engine starts with an episode
            self._game.new_episode()
        self._begin_episode()
        self._shaper.begin(self._view.observe(self._game.get_state(), obs[0]))

    def step(self, choices: Sequence[Sequence[int]], obs: Rows) -> tuple[list[float], bool, bool]:
        tics = min(self._frameskip, self._time_limit - self._tics)
        reward = self._game.make_action(self._view.buttons(choices[0]), tics)
        self._return += reward
        self._tics += tics
        self._num_steps += 1
        reward *= self._reward_scale
        state = self._game.get_state()
        terminated = state is None
        truncated = not terminated and self._tics == self._time_limit
        if not terminated:
            shaped_reward = self._shaper.reward(self._view.observe(state, obs[0]))
            if not truncated:
                reward += shaped_reward
        self._shaped_return += reward
        return [reward], terminated, truncated

    def set_shaping(self, agent_idx: int, weights: Sequence[float]) -> None:
        self._shaper.set_weights(weights)

    def episodes(self, first_actor_idx: int) -> list[Episode]:
        stats = {"shaped_return": self._shaped_return}
        if self._kills_are_objective:
            kills = self._game.get_game_variable(vizdoom.GameVariable.KILLCOUNT)
            stats |= {"kills": kills, "true_objective": kills}
        num_frames = self._game.get_episode_time() - self._start_time
        if num_frames < 0:  # the map is over, and its clock at zero: the last step counts in full
            num_frames = self._tics
        return [Episode(first_actor_idx, self._return, self._num_steps, num_frames, stats)]

    def returns(self) -> list[float]:
        return [self._return]

    def close(self) -> None:
        self._game.close()

    def _begin_episode(self) -> None:
        self._start_time = self._game.get_episode_time()
        self._tics = 0
        self._num_steps = 0
        self._return = 0.0
        self._shaped_return = 0.0
