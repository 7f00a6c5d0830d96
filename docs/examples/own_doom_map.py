"""A Doom map of one's own: a .cfg file beside its .wad.

    python own_doom_map.py my_maps/my_map.cfg
    sf-train --env doom:my_maps/my_map.cfg                            # the same; no Python is needed

Without a path, it copies a scenario of ViZDoom to my_maps/, changes its rewards and its buttons, and trains on that.
"""

import shutil
import sys
from pathlib import Path

import vizdoom

from sf import main

CONFIG = """
# beside this file
doom_scenario_path = my_map.wad
doom_map = map01
# in tics, 35 a second
episode_timeout = 300
# the reward is what the map's script pays, and these: ViZDoom has them for living, death, kills, items, health, ...
living_reward = -1
kill_reward = 101
available_buttons = { MOVE_LEFT MOVE_RIGHT ATTACK SPEED }
available_game_variables = { AMMO2 HEALTH }
"""


def make_map(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    shutil.copy(Path(vizdoom.scenarios_path, "simpler_basic.wad"), folder / "my_map.wad")
    config = folder / "my_map.cfg"
    config.write_text(CONFIG)
    return config


if __name__ == "__main__":
    has_path = len(sys.argv) > 1 and not sys.argv[1].startswith("-")
    path = sys.argv.pop(1) if has_path else make_map(Path("my_maps"))
    main(env=f"doom:{path}", config="doom_basic", train_for_env_steps=100_000, reward_scale=0.01)
