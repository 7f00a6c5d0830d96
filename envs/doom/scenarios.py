"""The single-player Doom tasks: one table, and the user's own by the path of a .cfg file.

Map, skill, time limit, the scenario's own reward and what is drawn come from the scenario's .cfg file, as
published with ViZDoom (and, for the battle maps, with envpool-assets). The table says what the paper
changes or adds: the buttons as heads of an action space, the frameskip, what the learner's reward is made
of, and the measurements.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from sf.envs.doom.controls import (
    ATTACK,
    BATTLE_HEADS,
    DEATHMATCH_HEADS,
    MEASUREMENTS,
    MOVE,
    SHOOT_OR_STRAFE,
    SHOOT_OR_TURN,
    STRAFE,
    TURN,
    WALK_OR_TURN,
    Head,
    Measurement,
)
from sf.envs.doom.own_config import find_config, read_config
from sf.envs.doom.shaping import HEALTH_AND_AMMO, MEDIKITS, NO_SHAPING, Shaping
from sf.envs.errors import UsageError


@dataclass(frozen=True)
class Scenario:
    """A row of the table."""

    config: str
    heads: tuple[Head, ...]
    frameskip: int = 4
    reward_scale: float = 1.0  # the learner's reward is the scenario's times this, plus the shaping
    shaping: Shaping = NO_SHAPING
    measurements: tuple[Measurement, ...] = ()
    kills_are_objective: bool = False  # else the return is
    needs_extra: bool = False  # map and .cfg come with envpool-assets


OWN = "doom:"  # before the path of a .cfg file

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
    """Raises UsageError for a name that is not in the table, and for a file that cannot be trained with."""
    if env_id.startswith(OWN):
        config = find_config(env_id.removeprefix(OWN))
        heads, measurements = read_config(config)
        return Scenario(str(config), heads, measurements=measurements)
    if env_id not in SCENARIOS:
        raise UsageError(f"env {env_id} is not a Doom task: use one of {', '.join(SCENARIOS)}")
    return SCENARIOS[env_id]


def config_path(env_id: str) -> Path:
    """Returns the .cfg file of a scenario; its map lies beside it. Raises UsageError where they are not installed."""
    if env_id.startswith(OWN):
        return find_config(env_id.removeprefix(OWN))
    scenario = find_scenario(env_id)
    if scenario.needs_extra:
        folder = _package_folder("envpool_assets", "vizdoom/maps")
        remedy = "the maps of envpool-assets: pip install 'envpool-assets>=0.3' (Python 3.11 or newer)"
    else:
        folder = _package_folder("vizdoom", "scenarios")
        remedy = "ViZDoom and its scenarios: pip install vizdoom"
    path = folder / scenario.config if folder else None
    if path is None or not path.is_file():
        raise UsageError(f"{env_id} needs {remedy}")
    return path


def _package_folder(package: str, folder: str) -> Path | None:
    """None where the package is not installed. It is not imported: only its files are of use."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / folder
