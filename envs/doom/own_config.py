"""Scenarios of the user's own, by the path of a ViZDoom .cfg file.

Map, rewards, time limit and what is drawn are ViZDoom's to read from the file. Its buttons become heads of an action
space: buttons that exclude each other are one head, and every other button is a head of its own. Its game variables
become the measurements beside the image, unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import vizdoom

from sf.envs.doom.controls import ANGLES, Head, Measurement, one_of, turn_by
from sf.envs.errors import UsageError

_EXCLUDE_EACH_OTHER = (
    {"TURN_LEFT", "TURN_RIGHT"},
    {"MOVE_LEFT", "MOVE_RIGHT"},
    {"MOVE_FORWARD", "MOVE_BACKWARD"},
    {"MOVE_UP", "MOVE_DOWN"},
    {"LOOK_UP", "LOOK_DOWN"},
    {"SELECT_NEXT_ITEM", "SELECT_PREV_ITEM"},
    {"SELECT_NEXT_WEAPON", "SELECT_PREV_WEAPON", *(f"SELECT_WEAPON{slot}" for slot in range(10))},
)


def find_config(name: str) -> Path:
    """The file of this path, or of this name among those that come with ViZDoom. Raises UsageError where none is."""
    for path in (Path(name), Path(vizdoom.scenarios_path, name)):
        if path.is_file() and path.suffix == ".cfg":
            return path.resolve()
    raise UsageError(f"env 'doom:{name}': there is no such file; give the path of a .cfg file of ViZDoom")


def read_config(path: Path) -> tuple[tuple[Head, ...], tuple[Measurement, ...]]:
    """The heads and the measurements. Raises UsageError for a file that cannot be trained with."""
    game = vizdoom.DoomGame()
    if not game.load_config(str(path)):
        raise UsageError(f"{path} has lines that ViZDoom does not take: mend those that its warnings above name")
    wad = game.get_doom_scenario_path()
    if wad and not os.path.isfile(wad):
        raise UsageError(
            f"{path} names the map {wad}, which is not there: mend doom_scenario_path, relative to the file"
        )
    buttons = [button.name for button in game.get_available_buttons()]
    if not buttons:
        raise UsageError(f"{path} has no available_buttons: name those that the agent may press")
    variables = [variable.name for variable in game.get_available_game_variables()]
    return _heads(path, buttons), tuple(Measurement(name) for name in variables)


def _heads(path: Path, buttons: Sequence[str]) -> tuple[Head, ...]:
    heads = []
    left = dict.fromkeys(buttons)
    while left:
        button = next(iter(left))
        rivals = next((group for group in _EXCLUDE_EACH_OTHER if button in group), {button})
        together = [name for name in left if name in rivals]
        for name in together:
            del left[name]
        if button in ANGLES:
            heads.append(turn_by(11, max_degrees=10.0, button=button))
        elif button.endswith("_DELTA"):
            raise UsageError(
                f"{path} has the button {button}, whose strength the file does not say: use buttons without DELTA"
            )
        else:
            heads.append(one_of(*together))
    return tuple(heads)
