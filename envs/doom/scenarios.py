"""The single-player Doom tasks: one table, and what its rows are made of.

Map, skill, time limit, the scenario's own reward and what is drawn come from the scenario's .cfg file, as
published with ViZDoom (and, for the battle maps, with envpool-assets). The table says what the paper
changes or adds: the buttons as heads of an action space, the frameskip, what the learner's reward is made
of, and the measurements.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from math import inf
from pathlib import Path

from envs.doom.shaping import HEALTH_AND_AMMO, MEDIKITS, Shaping


@dataclass(frozen=True)
class Head:
    """One categorical choice: option i holds the buttons, in their order, at `options[i]` for a step."""

    buttons: tuple[str, ...]
    options: tuple[tuple[float, ...], ...]


def one_of(*buttons: str) -> Head:
    """Nothing, or one of the buttons."""
    count = len(buttons)
    nothing = (0.0,) * count
    return Head(buttons, (nothing, *(tuple(float(i == j) for j in range(count)) for i in range(count))))


def turn_by(num_options: int, max_degrees: float) -> Head:
    """Turn, in every tic, by one of `num_options` equally spaced angles from -max_degrees to max_degrees."""
    step = 2 * max_degrees / (num_options - 1)
    return Head(("TURN_LEFT_RIGHT_DELTA",), tuple((i * step - max_degrees,) for i in range(num_options)))


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


@dataclass(frozen=True)
class Scenario:
    """A row of the table."""

    config: str
    heads: tuple[Head, ...]
    frameskip: int = 4
    reward_scale: float = 1.0  # the learner's reward is the scenario's times this, plus the shaping
    shaping: tuple[Shaping, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    kills_are_objective: bool = False  # else the return is
    needs_extra: bool = False  # map and .cfg come with envpool-assets


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

SCENARIOS = {
    "doom_basic": Scenario("basic.cfg", (SHOOT_OR_STRAFE,), reward_scale=0.01),
    "doom_rocket_basic": Scenario("rocket_basic.cfg", (SHOOT_OR_STRAFE,), reward_scale=0.01),
    "doom_deadly_corridor": Scenario("deadly_corridor.cfg", (TURN, STRAFE, MOVE, ATTACK), reward_scale=0.01),
    "doom_defend_the_center": Scenario("defend_the_center.cfg", (TURN, ATTACK)),
    "doom_defend_the_center_flat_actions": Scenario("defend_the_center.cfg", (SHOOT_OR_TURN,)),
    "doom_defend_the_line": Scenario("defend_the_line.cfg", (TURN, ATTACK)),
    "doom_health_gathering": Scenario("health_gathering.cfg", (WALK_OR_TURN,), reward_scale=0.01, shaping=MEDIKITS),
    "doom_health_gathering_supreme": Scenario(
        "health_gathering_supreme.cfg", (WALK_OR_TURN,), reward_scale=0.01, shaping=MEDIKITS
    ),
    "doom_my_way_home": Scenario("my_way_home.cfg", (TURN, MOVE)),
    "doom_my_way_home_flat_actions": Scenario("my_way_home.cfg", (WALK_OR_TURN,)),
    "doom_predict_position": Scenario("predict_position.cfg", (TURN, ATTACK)),
    "doom_take_cover": Scenario("take_cover.cfg", (STRAFE,), reward_scale=0.01),
    "doom_battle": Scenario(
        "D3_battle.cfg",
        BATTLE_HEADS,
        shaping=HEALTH_AND_AMMO,
        measurements=MEASUREMENTS,
        kills_are_objective=True,
        needs_extra=True,
    ),
    "doom_battle2": Scenario(
        "D4_battle2.cfg",
        BATTLE_HEADS,
        shaping=HEALTH_AND_AMMO,
        measurements=MEASUREMENTS,
        kills_are_objective=True,
        needs_extra=True,
    ),
    "doom_deathmatch_monsters": Scenario(
        "deathmatch.cfg",
        DEATHMATCH_HEADS,
        frameskip=2,
        shaping=HEALTH_AND_AMMO,
        measurements=MEASUREMENTS,
        kills_are_objective=True,
    ),
}


def find_scenario(env_id: str) -> Scenario:
    """Raises ValueError for a name that is not in the table."""
    if env_id not in SCENARIOS:
        raise ValueError(f"env {env_id} is not a Doom task: use one of {', '.join(SCENARIOS)}")
    return SCENARIOS[env_id]


def config_path(env_id: str) -> Path:
    """The .cfg file of a scenario; its map lies beside it. Raises ValueError where they are not installed."""
    scenario = find_scenario(env_id)
    if scenario.needs_extra:
        folder = _package_folder("envpool_assets", "vizdoom/maps")
        remedy = "the maps of the extra: pip install -e .[battle]"
    else:
        folder = _package_folder("vizdoom", "scenarios")
        remedy = "ViZDoom and its scenarios: pip install vizdoom"
    path = folder / scenario.config if folder else None
    if path is None or not path.is_file():
        raise ValueError(f"{env_id} needs {remedy}")
    return path


def _package_folder(package: str, folder: str) -> Path | None:
    """None where the package is not installed. It is not imported: only its files are of use."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / folder
