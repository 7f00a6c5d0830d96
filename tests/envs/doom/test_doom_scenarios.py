import gymnasium as gym
import maps
import numpy as np
import pytest
import vizdoom
from scripted_doom import ScriptedEngine

from sf.envs.doom.controls import FRAME_SHAPE, MEASUREMENTS, View, shrink, turn_by
from sf.envs.doom.group import ENV_IDS, describe
from sf.envs.doom.matches.tasks import MATCHES
from sf.envs.doom.scenarios import SCENARIOS, config_path
from sf.envs.options import EnvOptions
from sf.envs.spaces.actions import ActionSpec

INSTALLED = [env_id for env_id, scenario in SCENARIOS.items() if maps.ARE_HERE or not scenario.needs_extra]

# Choices of each head, time limit in tics (0: none), skill, living reward, death penalty.
EXPECTED = {
    "doom_basic": ((4,), 300, 5, -1, 0),
    "doom_rocket_basic": ((4,), 300, 3, -1, 0),
    "doom_deadly_corridor": ((3, 3, 3, 2), 2100, 5, 0, 100),
    "doom_defend_the_center": ((3, 2), 2100, 3, 0, 1),
    "doom_defend_the_center_flat_actions": ((4,), 2100, 3, 0, 1),
    "doom_defend_the_line": ((3, 2), 0, 3, 0, 1),
    "doom_health_gathering": ((5,), 2100, 3, 1, 100),
    "doom_health_gathering_supreme": ((5,), 2100, 3, 1, 100),
    "doom_my_way_home": ((3, 3), 2100, 5, -0.0001, 0),
    "doom_my_way_home_flat_actions": ((5,), 2100, 5, -0.0001, 0),
    "doom_predict_position": ((3, 2), 300, 1, -0.001, 0),
    "doom_take_cover": ((3,), 0, 4, 1, 0),
    "doom_battle": ((3, 3, 2, 2, 11), 2100, 2, 0, 0),
    "doom_battle2": ((3, 3, 2, 2, 11), 2100, 2, 0, 0),
    "doom_deathmatch_monsters": ((3, 3, 7, 2, 2, 21), 4200, 3, 0, 0),
}
# What the paper's tasks have beyond the buttons of the published .cfg files.
ADDED_BUTTONS = {
    "doom_health_gathering": {"MOVE_BACKWARD"},
    "doom_health_gathering_supreme": {"MOVE_BACKWARD"},
    "doom_my_way_home": {"MOVE_BACKWARD"},
    "doom_my_way_home_flat_actions": {"MOVE_BACKWARD"},
    "doom_battle": {"TURN_LEFT_RIGHT_DELTA"},
    "doom_battle2": {"TURN_LEFT_RIGHT_DELTA"},
}


def test_every_task_has_the_heads_of_the_paper_and_the_limit_skill_and_rewards_of_its_config():
    assert set(ENV_IDS) == {*EXPECTED, *MATCHES}
    for env_id in INSTALLED:
        heads, game = SCENARIOS[env_id].heads, vizdoom.DoomGame()
        game.load_config(str(config_path(env_id)))
        assert ActionSpec.of(describe(env_id, EnvOptions()).action_space).discrete_sizes == EXPECTED[env_id][0]
        rewards = game.get_living_reward(), game.get_death_penalty()
        found = (game.get_episode_timeout(), game.get_doom_skill(), *rewards)
        assert found == pytest.approx(EXPECTED[env_id][1:])
        buttons = [button for head in heads for button in head.buttons]
        assert len(set(buttons)) == len(buttons)
        assert set(buttons) - {button.name for button in game.get_available_buttons()} == ADDED_BUTTONS.get(
            env_id, set()
        )
        for head in heads:
            assert all(len(option) == len(head.buttons) for option in head.options)
            assert len(set(head.options)) == len(head.options)
    large = {env_id for env_id, scenario in SCENARIOS.items() if scenario.reward_scale == 0.01}
    assert {"doom_basic", "doom_deadly_corridor", "doom_health_gathering", "doom_take_cover"} <= large
    assert [option[0] for option in turn_by(11, max_degrees=10.0).options] == [*range(-10, 11, 2)]


def test_the_frameskip_can_be_chosen_and_an_image_is_the_only_observation_of_basic():
    spec = describe("doom_basic", EnvOptions())
    assert spec.obs_space == gym.spaces.Dict({"obs": gym.spaces.Box(0, 255, (72, 128, 3), np.uint8)})
    assert (spec.frameskip, describe("doom_basic", EnvOptions(env_frameskip=7)).frameskip) == (4, 7)
    spec = describe("doom_deathmatch_monsters", EnvOptions())
    assert spec.frameskip == 2
    assert (spec.obs_space["measurements"].shape, spec.obs_space["measurements"].dtype) == ((23,), np.float32)


def test_measurements_are_scaled_and_ammunition_is_capped():
    view = View((), MEASUREMENTS, [])
    engine = ScriptedEngine()
    view.configure(engine)
    engine.values = {"HEALTH": 60, "ARMOR": 30, "USER2": 3, "PLAYER_COUNT": 2, "AMMO2": 30, "AMMO4": 300, "WEAPON7": 1}
    engine.values |= {"SELECTED_WEAPON": 6, "SELECTED_WEAPON_AMMO": 600, "ATTACK_READY": 1}
    obs = {"obs": np.zeros((72, 128, 3), np.uint8), "measurements": np.zeros(23, np.float32)}
    view.observe(engine.get_state(), obs)
    weapons, ammo = [0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 2, 0, 5, 0, 0, 0]
    assert obs["measurements"].tolist() == pytest.approx([6, 5, 2, 1, 0.3, 1, 0.4, *weapons, *ammo])
    engine.values["HEALTH"] = -999900  # after it was telefragged
    view.observe(engine.get_state(), obs)
    assert obs["measurements"][2] == 0


@pytest.mark.parametrize("channels", [1, 3])
def test_shrink_takes_the_nearest_pixel_by_the_floor_convention_and_writes_nowhere_else(channels):
    screen = np.random.default_rng(0).integers(0, 256, (120, 160, channels), dtype=np.uint8)
    rows = np.full((3, 72, 128, channels), 7, np.uint8)
    shrink(screen, rows[1])
    for i, j in np.ndindex(*FRAME_SHAPE[:2]):
        assert (rows[1, i, j] == screen[i * 120 // 72, j * 160 // 128]).all()
    assert (rows[[0, 2]] == 7).all()
    with pytest.raises(ValueError, match="contiguous"):
        shrink(screen, np.zeros((144, 128, channels), np.uint8)[::2])
