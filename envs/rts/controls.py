"""Action spaces and observation spaces of the games, and what their parts are called."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sf.envs.errors import UsageError
from sf.envs.rts.engine.commands import COMMANDS, FLAG_COMMANDS, TOWER_COMMANDS
from sf.envs.rts.engine.observations import STEP, TACTICS, WALLS
from sf.envs.rts.engine.units import ATHLETE, BARRACKS, BASE, FLAG, NAMES, RESOURCE, RUNNER, TOWER, UNITS, Unit
from sf.envs.rts.settings import Settings
from sf.envs.spaces.actions import ACTION_MASK
from sf.envs.spaces.planes import Planes

OBSERVATION = "observation"
_FIRST_PLANES = ("own_hp", "enemy_hp", "store", "in_sight", "walls")
_NOT_IN_MINI = {FLAG, ATHLETE, TOWER, RUNNER}


class Controls(NamedTuple):
    """Describes how a player acts in a game, and what it sees."""

    action_names: tuple[str, ...]  # of one head; else of each head all, as head:choice
    head_sizes: tuple[int, ...]
    is_single: bool  # one head: the space is Discrete
    has_mask: bool
    plane_names: tuple[str, ...]
    plane_of: np.ndarray  # [3, K], see `sf.envs.rts.engine.observations`

    def action_space(self) -> gym.Space:
        if self.is_single:
            return gym.spaces.Discrete(self.head_sizes[0])
        return gym.spaces.MultiDiscrete(list(self.head_sizes))

    def choices(self, action: Any) -> np.ndarray:
        """Returns [H] int64, of an action of the space. Raises UsageError for what is none."""
        try:
            given = np.asarray(action)
        except ValueError:  # rows of several lengths
            given = np.empty(0)
        num = len(self.head_sizes)
        if given.dtype.kind in "iu" and given.ndim <= 1 and given.size == num:
            choices = given.reshape(num)
            if ((choices >= 0) & (choices < self.head_sizes)).all():
                return choices.astype(np.int64)
        raise UsageError(f"action is {action!r}: give one of {self.action_space()}")

    def names_of_heads(self) -> tuple[tuple[str, ...], ...]:
        """Returns the names of the choices of each head."""
        names = iter(self.action_names)
        return tuple(tuple(next(names) for _ in range(size)) for size in self.head_sizes)

    def obs_space(self, settings: Settings) -> gym.Space:
        planes = Planes(len(self.plane_names) * settings.history, settings.size, settings.size, STEP)
        if not self.has_mask:
            return planes
        mask = gym.spaces.Box(0, 1, (sum(self.head_sizes),), np.int8)
        return gym.spaces.Dict({OBSERVATION: planes, ACTION_MASK: mask})


def controls(settings: Settings, units: tuple[Unit, ...] = UNITS, own_commands: tuple[str, ...] = ()) -> Controls:
    heads = _heads(settings, units)
    if own_commands:
        heads = {head: (*choices, *own_commands) for head, choices in heads.items()}
    single = len(heads) == 1
    names = tuple(name if single else f"{head}:{name}" for head, choices in heads.items() for name in choices)
    planes, plane_of = _planes(settings.game, units)
    has_mask = settings.game == "tower" or not single
    return Controls(names, tuple(map(len, heads.values())), single, has_mask, planes, plane_of)


def _heads(settings: Settings, units: tuple[Unit, ...]) -> dict[str, tuple[str, ...]]:
    if settings.actions == "global":
        return {"command": {"mini": COMMANDS, "flag": FLAG_COMMANDS, "tower": TOWER_COMMANDS}[settings.game]}
    if settings.game == "flag":
        return {"carrier": ("keep", "go_home"), "others": FLAG_COMMANDS}
    troops = [unit.name for unit in units if unit.made_by == NAMES[BARRACKS]]
    return {
        "base": ("keep", "build_worker"),
        "worker": ("keep", "build_barracks", "attack_in_range"),
        "barracks": ("keep", *(f"build_{name}" for name in troops)),
        **dict.fromkeys(troops, TACTICS),
    }


def _planes(game: str, units: tuple[Unit, ...]) -> tuple[tuple[str, ...], np.ndarray]:
    mini = [kind for kind in range(len(units)) if kind not in _NOT_IN_MINI and kind != RESOURCE]
    by_game: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
        "mini": (mini, mini, [RESOURCE]),
        "flag": ([BASE, ATHLETE], [BASE, ATHLETE], [FLAG]),
        "tower": ([BASE, TOWER], [RUNNER], []),
    }
    kinds = by_game[game]
    names = list(_FIRST_PLANES if game == "tower" else _FIRST_PLANES[:WALLS])
    plane_of = np.full((3, len(units)), -1, np.int64)
    shown = [(owner, kind) for owner in range(3) for kind in kinds[owner]]
    # Units of one's own come last: surgery adds planes at the end.
    for owner, kind in sorted(shown, key=lambda owned: owned[1] >= len(UNITS)):
        plane_of[owner, kind] = len(names)
        names.append(("own_", "enemy_", "")[owner] + units[kind].name)
    return tuple(names), plane_of
