"""Turns the choices of players of Doom into buttons, and a state of the game into an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from operator import getitem

import gymnasium as gym
import numpy as np
import vizdoom

ANGLES = {"TURN_LEFT_RIGHT_DELTA": ("TURN_LEFT", "TURN_RIGHT"), "LOOK_UP_DOWN_DELTA": ("LOOK_DOWN", "LOOK_UP")}
"""Buttons that are held by an angle: what a negative one does, and a positive one."""


@dataclass(frozen=True)
class Head:
    """One categorical choice: option i holds the buttons, in their order, at `options[i]` for a step."""

    buttons: tuple[str, ...]
    options: tuple[tuple[float, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the buttons that each option holds, and how far one turns by it, in degrees a tic."""
        return tuple(_name(self.buttons, option) for option in self.options)


def one_of(*buttons: str) -> Head:
    """Nothing, or one of the buttons."""
    count = len(buttons)
    nothing = (0.0,) * count
    return Head(buttons, (nothing, *(tuple(float(i == j) for j in range(count)) for i in range(count))))


def turn_by(num_options: int, max_degrees: float, button: str = "TURN_LEFT_RIGHT_DELTA") -> Head:
    """Turn, or look up and down, in every tic, by one of `num_options` angles from -max_degrees to max_degrees."""
    step = 2 * max_degrees / (num_options - 1)
    return Head((button,), tuple((i * step - max_degrees,) for i in range(num_options)))


def _name(buttons: Sequence[str], option: Sequence[float]) -> str:
    held = []
    for button, strength in zip(buttons, option, strict=True):
        if button in ANGLES and strength:
            negative, positive = ANGLES[button]
            held.append(f"{positive if strength > 0 else negative} {abs(strength):g}")
        elif strength:
            held.append(button)
    return "+".join(held) or "NOOP"


@dataclass(frozen=True)
class Measurement:
    """One of the numbers beside the image: min(game variable x scale, cap)."""

    variable: str
    scale: float = 1.0
    cap: float = inf


MEASUREMENTS = (
    Measurement("SELECTED_WEAPON"),
    Measurement("SELECTED_WEAPON_AMMO", 1 / 15, 5.0),
    Measurement("HEALTH", 1 / 30),
    Measurement("ARMOR", 1 / 30),
    Measurement("USER2", 1 / 10),
    Measurement("ATTACK_READY"),
    Measurement("PLAYER_COUNT", 1 / 5),
    *(Measurement(f"WEAPON{slot}") for slot in range(8)),
    *(Measurement(f"AMMO{slot}", 1 / 15, 5.0) for slot in range(8)),
)


TURN = one_of("TURN_LEFT", "TURN_RIGHT")
STRAFE = one_of("MOVE_LEFT", "MOVE_RIGHT")
MOVE = one_of("MOVE_FORWARD", "MOVE_BACKWARD")
ATTACK = one_of("ATTACK")
SPRINT = one_of("SPEED")
WEAPON = one_of(*(f"SELECT_WEAPON{slot}" for slot in range(1, 7)))
SHOOT_OR_STRAFE = one_of("MOVE_LEFT", "MOVE_RIGHT", "ATTACK")
SHOOT_OR_TURN = one_of("TURN_LEFT", "TURN_RIGHT", "ATTACK")
WALK_OR_TURN = one_of("TURN_LEFT", "TURN_RIGHT", "MOVE_FORWARD", "MOVE_BACKWARD")

BATTLE_HEADS = (MOVE, STRAFE, ATTACK, SPRINT, turn_by(11, max_degrees=10.0))
DEATHMATCH_HEADS = (MOVE, STRAFE, WEAPON, ATTACK, SPRINT, turn_by(21, max_degrees=12.5))
# All that a human player has; the players of a match look straight ahead, and neither jump nor crouch.
FULL_HEADS = (
    MOVE,
    STRAFE,
    one_of(*(f"SELECT_WEAPON{slot}" for slot in range(1, 8))),
    ATTACK,
    SPRINT,
    one_of("USE"),
    turn_by(21, max_degrees=12.5),
)


SCREEN_HEIGHT, SCREEN_WIDTH = 120, 160
FRAME_HEIGHT, FRAME_WIDTH = 72, 128
FRAME_SHAPE = (FRAME_HEIGHT, FRAME_WIDTH, 3)
BUFFERS = {"depth": 1, "labels": 1, "automap": 3}
"""ViZDoom can draw these beside the screen, with this many channels. In a state of the game each is NAME_buffer."""

NOT_SHOWN = ("audio_buffer", "notifications_buffer", "objects_info", "sectors_info")
"""ViZDoom can tell these besides, and no policy sees them."""

_FOUR_PIXELS = {channels: np.dtype(f"V{4 * channels}") for channels in (1, 3)}
_BLOCKS = (24, 5, 32)  # groups of rows, rows of a group, runs of a row


def spaces(
    heads: Sequence[Head], measurements: Sequence[Measurement], buffers: Sequence[str] = ()
) -> tuple[gym.spaces.Dict, gym.Space]:
    """Returns the spaces of observations and actions.

    obs: [72, 128, 3] uint8, RGB, channels last. measurements, where there are any: [M] float32. Each of `buffers`, by
    its name: [72, 128, C] uint8.
    """
    boxes: dict[str, gym.Space] = {"obs": gym.spaces.Box(0, 255, FRAME_SHAPE, np.uint8)}
    for name in buffers:
        boxes[name] = gym.spaces.Box(0, 255, (FRAME_HEIGHT, FRAME_WIDTH, BUFFERS[name]), np.uint8)
    if measurements:
        boxes["measurements"] = gym.spaces.Box(-np.inf, np.inf, (len(measurements),), np.float32)
    sizes = [len(head.options) for head in heads]
    return gym.spaces.Dict(boxes), gym.spaces.Discrete(sizes[0]) if len(sizes) == 1 else gym.spaces.MultiDiscrete(sizes)


class View:
    """Shows one player its game, and translates what it does."""

    def __init__(
        self,
        heads: Sequence[Head],
        measurements: Sequence[Measurement],
        variables: Sequence[str],
        buffers: Sequence[str] = (),
    ) -> None:
        """variables: game variables that are wanted besides those of the measurements. buffers: see `BUFFERS`."""
        self.variables = [*dict.fromkeys([*(item.variable for item in measurements), *variables])]
        self._buttons = [button for head in heads for button in head.buttons]
        self._options = [head.options for head in heads]
        self._buffers = [(name, f"{name}_buffer") for name in buffers]
        self._num_measured = len(measurements)
        self._scales = np.array([item.scale for item in measurements])
        self._caps = np.array([item.cap for item in measurements])
        self._health_idx = self.variables.index("HEALTH") if "HEALTH" in self.variables else None

    def configure(self, game: vizdoom.DoomGame) -> None:
        """Have a game that has not started render small frames in silence, and offer these buttons and variables."""
        game.set_available_buttons([getattr(vizdoom.Button, name) for name in self._buttons])
        game.set_available_game_variables([getattr(vizdoom.GameVariable, name) for name in self.variables])
        game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        game.set_screen_format(vizdoom.ScreenFormat.RGB24)
        game.set_window_visible(False)
        for name in NOT_SHOWN:
            getattr(game, f"set_{name}_enabled")(False)

    def buttons(self, choices: Sequence[int]) -> list[float]:
        """Returns the buttons that one option a head holds."""
        return list(chain.from_iterable(map(getitem, self._options, choices)))

    def observe(self, state: vizdoom.GameState, obs: Mapping[str, np.ndarray]) -> list[float]:
        """Write the observation of a state, and return its game variables in the order of `variables`."""
        shrink(state.screen_buffer, obs["obs"])
        for key, name in self._buffers:
            shrink(getattr(state, name), obs[key])
        variables = state.game_variables
        if variables is None:
            return []
        if self._health_idx is not None:  # a dead player has none, and not -999900 after it was telefragged
            variables[self._health_idx] = max(variables[self._health_idx], 0.0)
        count = self._num_measured
        if count:
            np.minimum(variables[:count] * self._scales, self._caps, out=obs["measurements"])
        return variables.tolist()


def shrink(screen: np.ndarray, frame: np.ndarray) -> None:
    """Write `screen` [120, 160, 3] into `frame` [72, 128, 3], both uint8 and contiguous: the nearest neighbours.

    One channel is [120, 160] and [72, 128, 1].

    Row i of the small frame is row floor(i x 120/72) of the large one, column j is column floor(j x 160/128).
    Both repeat: of every 5 rows the rows 0, 1 and 3 stay, and of every 5 columns the first 4. So what stays of
    a row is runs of 4 pixels, 12 bytes, and numpy copies runs fastest as items of an opaque 12-byte type: 7 us
    a frame, where indexing takes 21.
    """
    channels = frame.shape[2]
    strides = (5 * SCREEN_WIDTH * channels, SCREEN_WIDTH * channels, 5 * channels)  # bytes
    runs = np.ndarray(_BLOCKS, _FOUR_PIXELS[channels], screen, 0, strides)
    rows = np.ndarray((24, 3, 32), _FOUR_PIXELS[channels], frame)
    rows[:, :2] = runs[:, :2]
    rows[:, 2] = runs[:, 3]
