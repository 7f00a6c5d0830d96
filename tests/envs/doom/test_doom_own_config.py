from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import vizdoom
from group_driver import play

from sf import envs
from sf.envs import ActionSpec, EnvOptions, UsageError

CONFIG = """
doom_scenario_path = my_map.wad
episode_timeout = 60
living_reward = -1
available_buttons = { MOVE_LEFT ATTACK MOVE_RIGHT TURN_LEFT_RIGHT_DELTA SELECT_WEAPON1 SELECT_NEXT_WEAPON SPEED }
available_game_variables = { AMMO2 HEALTH }
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    shutil.copy(Path(vizdoom.scenarios_path, "simpler_basic.wad"), tmp_path / "my_map.wad")
    path = tmp_path / "my.cfg"
    path.write_text(CONFIG)
    return path


def test_buttons_become_heads_and_game_variables_measurements(config: Path) -> None:
    spec = envs.describe(f"doom:{config}", EnvOptions(env_frameskip=6))
    # left or right, attack, an angle, one of two ways to change the weapon, run; each of them or nothing
    assert ActionSpec.of(spec.action_space).discrete_sizes == (3, 2, 11, 3, 2)
    assert spec.obs_space["measurements"].shape == (2,)
    assert spec.frameskip == 6


def test_it_is_played_with_the_rewards_and_the_limit_of_the_file(config: Path) -> None:
    group = envs.make_group(f"doom:{config}", 1, EnvOptions(), seed=0, first_env_idx=0)
    first_obs, steps = play(group, 20)
    assert first_obs["measurements"].tolist() == [[50.0, 100.0]]  # as they are
    (episode, *_) = [episode for step in steps for episode in step.episodes]
    assert episode.num_frames <= 60
    assert steps[0].result.reward[0] == -4.0  # 4 tics


def test_a_file_for_people_is_played_by_the_agent_and_not_in_real_time(config: Path) -> None:
    config.write_text(f"{CONFIG}mode = ASYNC_SPECTATOR\n")
    group = envs.make_group(f"doom:{config}", 1, EnvOptions(), seed=0, first_env_idx=0)
    assert group._games[0]._game.get_mode() == vizdoom.Mode.PLAYER
    group.close()


def test_buffers_become_images_and_what_nobody_sees_is_named(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    ignored = {"audio_buffer_enabled": "true", "screen_format": "GRAY8", "screen_resolution": "RES_640X480"}
    lines = dict.fromkeys(("depth_buffer_enabled", "labels_buffer_enabled", "automap_buffer_enabled"), "true") | ignored
    config.write_text(CONFIG + "".join(f"{key} = {value}\n" for key, value in lines.items()))
    group = envs.make_group(f"doom:{config}", 1, EnvOptions(), seed=0, first_env_idx=0)
    first_obs, _ = play(group, 5)
    assert {key: rows.shape[1:] for key, rows in first_obs.items() if key != "measurements"} == {
        "obs": (72, 128, 3),
        "depth": (72, 128, 1),
        "labels": (72, 128, 1),
        "automap": (72, 128, 3),
    }
    assert all(len(np.unique(rows)) > 1 for rows in first_obs.values())
    [record] = caplog.records
    assert [key for key in lines if key in record.getMessage()] == list(ignored)


def test_buffers_are_no_obstacle_to_a_film(config: Path) -> None:
    config.write_text(f"{CONFIG}depth_buffer_enabled = true\nscreen_resolution = RES_160X120\n")
    group = envs.make_rendered_group(f"doom:{config}", 1, EnvOptions(), seed=0, first_env_idx=0)
    play(group, 5)
    assert group.pictures()[0][-1].shape == (480, 640, 3)


def test_an_absolute_path_of_the_map_is_taken_as_such(config: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "my_map.wad").rename(elsewhere / "my_map.wad")
    config.write_text(CONFIG.replace("my_map.wad", str(elsewhere / "my_map.wad")))
    group = envs.make_group(f"doom:{config}", 1, EnvOptions(), seed=0, first_env_idx=0)
    first_obs, _ = play(group, 1)
    assert first_obs["measurements"].tolist() == [[50.0, 100.0]]


def test_what_comes_with_vizdoom_needs_no_path() -> None:
    assert envs.describe("doom:simpler_basic.cfg", EnvOptions()).action_space.nvec.tolist() == [3, 2]


WRONG_LINES = {
    "available_buttons = { FLY }": "ViZDoom does not take",
    "doom_scenario_path = nowhere.wad": "nowhere.wad",
    "available_buttons = { MOVE_LEFT_RIGHT_DELTA }": "MOVE_LEFT_RIGHT_DELTA",
    "available_buttons = { }": "available_buttons|ViZDoom does not take",
    "doom_map = map42": "MAP42.* MAP01",
    "doom_game_path = nowhere.wad": "doom_game_path",
    "doom_scenario_path = my.wad": "doom_scenario_path",
    "game_args += -host 2": "-host",
}


@pytest.mark.parametrize("line", WRONG_LINES)
def test_a_file_that_cannot_be_trained_with_is_refused(config: Path, line: str) -> None:
    (config.parent / "my.wad").write_text("no WAD at all")
    config.write_text(CONFIG + line + "\n")
    with pytest.raises(UsageError, match=WRONG_LINES[line]):
        envs.describe(f"doom:{config}", EnvOptions())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("doom_scenario_path", "doom_map = map07\ndoom_scenario_path"),  # a map of the game below the scenario
        ("doom_scenario_path = my_map.wad", "doom_game_path = freedoom1.wad\ndoom_map = e1m2"),
        ("doom_scenario_path = my_map.wad", "doom_game_path = freedoom1.wad"),
    ],
)
def test_maps_of_the_games_that_come_with_vizdoom_are_found(config: Path, before: str, after: str) -> None:
    config.write_text(CONFIG.replace(before, after))
    assert envs.describe(f"doom:{config}", EnvOptions()).num_agents == 1


@pytest.mark.parametrize(
    ("name", "named"), [("cig.cfg", "--env doom_duel_bots"), ("no_such.cfg", "no_such"), ("basic.wad", "basic.wad")]
)
def test_a_map_for_matches_alone_and_what_is_no_config_file_are_refused(name: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        envs.describe(f"doom:{name}", EnvOptions())
