"""One single-player game of Doom: an engine, its actions, observations and rewards."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import getitem
from pathlib import Path

import numpy as np
import vizdoom

from envs.doom.engine import start_engine
from envs.doom.frames import shrink
from envs.doom.scenarios import Scenario
from envs.doom.shaping import shaped_reward
from envs.group import Episode


class DoomEnv:
    """An engine that plays a scenario. Call `reset` first, and after each episode that ended.

    An episode that ends by itself (the player dies, the map's script ends it) is terminated; one that
    reaches the time limit is truncated, also where to survive until then is the whole task. The policy sees
    no clock, so to it the limit is a cut through a game that would go on, and the value of the last frame
    is the right bootstrap. For the sake of that frame the limit is kept here and not in ViZDoom, which has
    no frame left when it ends an episode.
    """

    def __init__(self, scenario: Scenario, config: Path, frameskip: int, shaped: bool, seed: int) -> None:
        """seed: 32 bits; the engine draws the seed of each episode from it.

        Raises RuntimeError where the engine does not start.
        """
        self._options = [head.options for head in scenario.heads]
        self._frameskip = frameskip
        self._reward_scale = scenario.reward_scale
        self._kills_are_objective = scenario.kills_are_objective
        self._measured_scales = np.array([measurement.scale for measurement in scenario.measurements])
        self._measured_caps = np.array([measurement.cap for measurement in scenario.measurements])
        shaping = scenario.shaping if shaped else ()
        names = [item.variable for item in scenario.measurements]
        names += [item.variable for item in shaping]
        variables = [*dict.fromkeys(names)]  # the measurements first, in their order
        self._shaping = [(variables.index(item.variable), item) for item in shaping]
        self._values: list[float] = []  # of the variables, when they were last observed

        self._game = vizdoom.DoomGame()
        self._game.load_config(str(config))
        self._time_limit = self._game.get_episode_timeout() or sys.maxsize  # tics
        self._game.set_episode_timeout(0)
        buttons = [button for head in scenario.heads for button in head.buttons]
        self._game.set_available_buttons([getattr(vizdoom.Button, button) for button in buttons])
        self._game.set_available_game_variables([getattr(vizdoom.GameVariable, name) for name in variables])
        self._game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        self._game.set_screen_format(vizdoom.ScreenFormat.RGB24)
        self._game.set_window_visible(False)
        self._game.set_seed(seed)
        start_engine(self._game)
        self._begin_episode()

    def reset(self, obs: Mapping[str, np.ndarray]) -> None:
        """Start the next episode and write its first observation."""
        if self._num_steps > 0:  # an engine starts with an episode
            self._game.new_episode()
        self._begin_episode()
        self._observe(self._game.get_state(), obs)

    def step(self, choices: Sequence[int], obs: Mapping[str, np.ndarray]) -> tuple[float, bool, bool]:
        """Hold the buttons of one option a head for `frameskip` tics, or fewer up to the time limit.

        Returns (learner's reward, terminated, truncated), and writes the observation, unless terminated:
        then there is none. Raises a ViZDoom exception where the engine has died.
        """
        tics = min(self._frameskip, self._time_limit - self._tics)
        buttons = list(chain.from_iterable(map(getitem, self._options, choices)))
        reward = self._game.make_action(buttons, tics)
        self._return += reward
        self._tics += tics
        self._num_steps += 1
        reward *= self._reward_scale
        state = self._game.get_state()
        terminated = state is None
        truncated = not terminated and self._tics == self._time_limit
        if not terminated:
            before = self._values
            self._observe(state, obs)
            if self._values != before and not truncated:
                reward += shaped_reward(self._shaping, before, self._values)
        self._shaped_return += reward
        return reward, terminated, truncated

    def episode(self, actor_idx: int) -> Episode:
        """What to report of the episode that has just ended. Call it before `reset`."""
        stats = {"shaped_return": self._shaped_return}
        if self._kills_are_objective:
            kills = self._game.get_game_variable(vizdoom.GameVariable.KILLCOUNT)
            stats |= {"kills": kills, "true_objective": kills}
        num_frames = self._game.get_episode_time() - self._start_time
        if num_frames < 0:  # the map is over, and its clock at zero: the last step counts in full
            num_frames = self._tics
        return Episode(actor_idx, self._return, self._num_steps, num_frames, stats)

    def close(self) -> None:
        """End the engine. Does nothing where it has ended already."""
        self._game.close()

    def _begin_episode(self) -> None:
        self._start_time = self._game.get_episode_time()
        self._tics = 0
        self._num_steps = 0
        self._return = 0.0
        self._shaped_return = 0.0

    def _observe(self, state: vizdoom.GameState, obs: Mapping[str, np.ndarray]) -> None:
        shrink(state.screen_buffer, obs["obs"])
        variables = state.game_variables
        if variables is None:
            return
        self._values = variables.tolist()
        count = len(self._measured_scales)
        if count:
            np.minimum(variables[:count] * self._measured_scales, self._measured_caps, out=obs["measurements"])
