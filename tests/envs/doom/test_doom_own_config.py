from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import vizdoom
from group_driver import play

from sf import envs
from sf.envs import ActionSpec, EnvOptions

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


@pytest.mark.parametrize("mode", ["SPECTATOR", "ASYNC_PLAYER"])
def test_a_file_for_people_is_played_by_the_agent_and_not_in_real_time(config: Path, mode: str) -> None:
    config.write_text(f"{CONFIG}mode = {mode}\n")
    group = envs.make_group(f"doom:{config}", 1, EnvOptions(), seed=0, first_env_idx=0)
    assert group._games[0]._game.get_mode() == vizdoom.Mode.PLAYER
    group.close()


def test_what_comes_with_vizdoom_needs_no_path() -> None:
    assert envs.describe("doom:simpler_basic.cfg", EnvOptions()).action_space.nvec.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("available_buttons = { FLY }", "has lines that ViZDoom does not take"),
        ("doom_scenario_path = nowhere.wad", "names the map .*nowhere.wad, which is not there"),
        (
            "available_buttons = { MOVE_LEFT_RIGHT_DELTA }",
            "the button MOVE_LEFT_RIGHT_DELTA, whose strength the file does not say",
        ),
        ("available_buttons = { }", "has no available_buttons|has lines that ViZDoom does not take"),
        ("doom_map = map42", "has the doom_map MAP42, which is not in its WAD: name one of MAP01"),
        ("doom_game_path = nowhere.wad", "nowhere.wad, which is not there: mend doom_game_path"),
        ("doom_scenario_path = my.wad", "my.wad, which is no WAD, or half of one: mend doom_scenario_path"),
        ("game_args += -host 2", "has -host in its game_args, and the agent plays alone: leave it out"),
    ],
)
def test_a_file_that_cannot_be_trained_with_is_answered_with_what_to_change(
    config: Path, line: str, sentence: str
) -> None:
    (config.parent / "my.wad").write_text("no WAD at all")
    config.write_text(CONFIG + line + "\n")
    with pytest.raises(ValueError, match=sentence):
        envs.describe(f"doom:{config}", EnvOptions())


def test_a_map_of_the_game_below_the_scenario_can_be_played(config: Path) -> None:
    config.write_text(CONFIG + "doom_map = map07\n")
    assert envs.describe(f"doom:{config}", EnvOptions()).num_agents == 1


@pytest.mark.parametrize("line", ["doom_map = e1m2", ""])
def test_a_game_that_comes_with_vizdoom_is_found(config: Path, line: str) -> None:
    config.write_text(CONFIG.replace("doom_scenario_path = my_map.wad", f"doom_game_path = freedoom1.wad\n{line}"))
    assert envs.describe(f"doom:{config}", EnvOptions()).num_agents == 1


def test_a_map_for_matches_alone_is_refused() -> None:
    sentence = "the doom_map MAP01, in which nobody starts who plays alone: .* --env doom_duel_bots --doom_wad cig.wad"
    with pytest.raises(ValueError, match=sentence):
        envs.describe("doom:cig.cfg", EnvOptions())


@pytest.mark.parametrize("name", ["no_such.cfg", "basic.wad"])
def test_what_is_no_config_file_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"env 'doom:{name}': there is no .cfg file of this name; give the path"):
        envs.describe(f"doom:{name}", EnvOptions())
