"""What players of Doom do and know: the heads of their action spaces, and the numbers beside the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

ANGLES = {"TURN_LEFT_RIGHT_DELTA": ("TURN_LEFT", "TURN_RIGHT"), "LOOK_UP_DOWN_DELTA": ("LOOK_DOWN", "LOOK_UP")}
"""Buttons that are held by an angle: what a negative one does, and a positive one."""


@dataclass(frozen=True)
class Head:
    """One categorical choice: option i holds the buttons, in their order, at `options[i]` for a step."""

    buttons: tuple[str, ...]
    options: tuple[tuple[float, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the options: the buttons that each holds, and how far one turns by it, in degrees a tic."""
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
