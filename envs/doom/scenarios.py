"""The single-player Doom tasks: one table, and the user's own by the path of a ViZDoom .cfg file.

Map, skill, time limit, the scenario's own reward and what is drawn come from the .cfg file, as published with ViZDoom
(and, for the battle maps, with envpool-assets). The table says what the paper changes or adds: the buttons as heads of
an action space, the frameskip, what the learner's reward is made of, and the measurements.

Of a user's own file, buttons that exclude each other are one head, and every other button is a head of its own. Its
game variables become the measurements beside the image, unchanged, and the buffers that it enables become images.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import vizdoom

from sf.envs.doom.controls import (
    ANGLES,
    ATTACK,
    BATTLE_HEADS,
    BUFFERS,
    DEATHMATCH_HEADS,
    FRAME_HEIGHT,
    FRAME_WIDTH,
    MEASUREMENTS,
    MOVE,
    NOT_SHOWN,
    SCREEN_HEIGHT,
    SCREEN_WIDTH,
    SHOOT_OR_STRAFE,
    SHOOT_OR_TURN,
    STRAFE,
    TURN,
    WALK_OR_TURN,
    Head,
    Measurement,
    one_of,
    turn_by,
)
from sf.envs.doom.matches.wads import single_starts
from sf.envs.doom.shaping import HEALTH_AND_AMMO, MEDIKITS, NO_SHAPING, Shaping
from sf.envs.errors import UsageError
from sf.envs.remarks import remark


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
    buffers: tuple[str, ...] = ()  # that are images of the observation
    ignored: tuple[str, ...] = ()  # keys of the .cfg file


OWN = "doom:"  # before the path of a .cfg file


def _fight(config: str, heads: tuple[Head, ...], frameskip: int = 4, needs_extra: bool = False) -> Scenario:
    return Scenario(
        config,
        heads,
        frameskip,
        shaping=HEALTH_AND_AMMO,
        measurements=MEASUREMENTS,
        kills_are_objective=True,
        needs_extra=needs_extra,
    )


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
    "doom_battle": _fight("D3_battle.cfg", BATTLE_HEADS, needs_extra=True),
    "doom_battle2": _fight("D4_battle2.cfg", BATTLE_HEADS, needs_extra=True),
    "doom_deathmatch_monsters": _fight("deathmatch.cfg", DEATHMATCH_HEADS, frameskip=2),
}


def find_scenario(env_id: str) -> Scenario:
    """Raises UsageError for a file that cannot be trained with."""
    if env_id.startswith(OWN):
        return read_config(find_config(env_id.removeprefix(OWN)))
    return SCENARIOS[env_id]


def remark_on_ignored(env_id: str) -> None:
    """Say which lines of the user's own file have no effect on what the policy sees."""
    ignored = find_scenario(env_id).ignored
    if ignored:
        remark(
            f"{env_id} ignored",
            f"{env_id}: {', '.join(ignored)} {'is' if len(ignored) == 1 else 'are'} ignored: the policy sees the "
            f"screen at {FRAME_WIDTH}x{FRAME_HEIGHT} in RGB, the buffers {', '.join(BUFFERS)} where the file enables "
            "them, and its game variables",
        )


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


_EXCLUDE_EACH_OTHER = (
    {"TURN_LEFT", "TURN_RIGHT"},
    {"MOVE_LEFT", "MOVE_RIGHT"},
    {"MOVE_FORWARD", "MOVE_BACKWARD"},
    {"MOVE_UP", "MOVE_DOWN"},
    {"LOOK_UP", "LOOK_DOWN"},
    {"SELECT_NEXT_ITEM", "SELECT_PREV_ITEM"},
    {"SELECT_NEXT_WEAPON", "SELECT_PREV_WEAPON", *(f"SELECT_WEAPON{slot}" for slot in range(10))},
)

_ANY_FIRST_MAP = "MAP01"  # also of a game that calls it E1M1


def find_config(name: str) -> Path:
    """Returns the file of this path, or of this name among ViZDoom's own. Raises UsageError where there is none."""
    for path in (Path(name), Path(vizdoom.scenarios_path, name)):
        if path.is_file() and path.suffix.lower() == ".cfg":
            return path.resolve()
    raise UsageError(f"env 'doom:{name}': there is no .cfg file of this name; give the path of one of ViZDoom's form")


def load_config(game: vizdoom.DoomGame, path: Path) -> bool:
    """`game.load_config`, which takes an absolute path in the file for one relative to it: that is put right here."""
    is_loaded = game.load_config(str(path))
    for key in ("doom_scenario_path", "doom_game_path"):
        relative = getattr(game, f"get_{key}")()
        absolute = relative.removeprefix(str(path.parent))
        if os.path.isfile(absolute) and not os.path.isfile(relative):
            getattr(game, f"set_{key}")(absolute)
    return is_loaded


def read_config(path: Path) -> Scenario:
    """Raises UsageError for a file that cannot be trained with."""
    game = vizdoom.DoomGame()
    game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)  # unless the file has another
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    if not load_config(game, path):
        raise UsageError(f"{path} has lines that ViZDoom does not take: fix those that its warnings above name")
    _require_map(path, game)
    waits_for = next((word for word in ("-host", "-join") if word in game.get_game_args().split()), None)
    if waits_for is not None:
        raise UsageError(f"{path} has {waits_for} in its game_args, and the agent plays alone: leave it out")
    buttons = [button.name for button in game.get_available_buttons()]
    if not buttons:
        raise UsageError(f"{path} has no available_buttons: name those that the agent may press")
    variables = [variable.name for variable in game.get_available_game_variables()]
    return Scenario(
        str(path),
        _heads(path, buttons),
        measurements=tuple(Measurement(name) for name in variables),
        buffers=tuple(name for name in BUFFERS if getattr(game, f"is_{name}_buffer_enabled")()),
        ignored=tuple(_ignored(game)),
    )


def _ignored(game: vizdoom.DoomGame) -> Iterator[str]:
    """Yields the keys of its .cfg file that ask for what no policy sees. The order of colours in a pixel is no
    difference."""
    yield from (f"{name}_enabled" for name in NOT_SHOWN if getattr(game, f"is_{name}_enabled")())
    if game.get_screen_format() in (vizdoom.ScreenFormat.GRAY8, vizdoom.ScreenFormat.DOOM_256_COLORS8):
        yield "screen_format"
    if (game.get_screen_width(), game.get_screen_height()) != (SCREEN_WIDTH, SCREEN_HEIGHT):
        yield "screen_resolution"


def _require_map(path: Path, game: vizdoom.DoomGame) -> None:
    """Raises UsageError for what ends in no sentence: an engine that does not find its map never answers, one that
    finds no start dies and takes its owner along, and one that cannot read its WAD plays another."""
    wanted, scenario = game.get_doom_map().upper(), game.get_doom_scenario_path()
    own = _maps(path, "doom_scenario_path", scenario) if scenario else {}
    game_wad = _game_wad(game.get_doom_game_path())
    below = _maps(path, "doom_game_path", game_wad)
    if own is None or below is None:
        return
    starts = {**below, **own}
    if starts.get(wanted) == 0:
        wad = os.path.basename(scenario if wanted in own else game_wad)
        raise UsageError(
            f"{path} has the doom_map {wanted}, in which nobody starts who plays alone: name another one, or play it "
            f"as a match, as --env doom_duel_bots --doom_wad {wad} --doom_map {wanted}"
        )
    if wanted not in starts and wanted != _ANY_FIRST_MAP:
        raise UsageError(
            f"{path} has the doom_map {wanted}, which is not in its WAD: name one of {', '.join(own or below)}"
        )


def _maps(path: Path, key: str, wad: str) -> dict[str, int] | None:
    """Returns how many start alone in each map of a WAD that the file names by this key, or None for no WAD."""
    if not os.path.isfile(wad):
        named = wad.removeprefix(str(path.parent))
        raise UsageError(
            f"{path} names by {key} a WAD that is neither {wad} nor {named}: give its path relative to the .cfg file, "
            "or an absolute one"
        )
    if not wad.lower().endswith(".wad"):
        return None
    try:
        return single_starts(Path(wad))
    except UsageError:
        raise UsageError(f"{path} names {wad}, which is not a WAD file, or is cut short: fix {key}") from None


def _game_wad(named: str) -> str:
    """Returns the WAD of the game below a scenario, as ViZDoom finds it."""
    package = os.path.dirname(vizdoom.__file__)
    names = [named] if named else ["doom2.wad", "freedoom2.wad"]
    places = [*names, *(os.path.join(package, os.path.basename(name)) for name in names)]
    return next(filter(os.path.isfile, places), names[-1])


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
