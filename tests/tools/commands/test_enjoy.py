"""What is shown of the episodes that are played: panels, their grid, videos, the window, and what the command says."""

import os
import re
import signal
from pathlib import Path

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pytest
from full_disk import full_disk
from hypothesis import example, given
from hypothesis import strategies as st
from moving_env import Moving
from untrained import untrained

from sf import envs
from sf.evaluation.pictures.overlay import Grid, Panel
from sf.evaluation.pictures.stage import Stage
from sf.evaluation.pictures.video import Video
from sf.evaluation.play import contestants
from sf.evaluation.play.episodes import Played
from sf.storage import checkpoint
from sf.tools.commands import enjoy
from sf.tools.commands.play.window import Window


def picture(grey, shape=(40, 60)):
    return np.full((*shape, 3), grey, np.uint8)


@given(
    num_envs=st.integers(1, 9),
    num_views=st.integers(1, 4),
    height=st.integers(20, 800),
    width=st.integers(20, 800),
    limit=st.sampled_from([(640, 480), (1152, 900), (1920, 1080)]),
)
@example(num_envs=7, num_views=4, height=747, width=20, limit=(1152, 900))  # sides of an odd number of pixels
def test_a_grid_of_any_pictures_fits_and_has_even_sides(num_envs, num_views, height, width, limit):
    grid = Grid(num_envs * num_views, num_views, (height, width), limit)
    assert all(side % 2 == 0 and 0 < side <= most for side, most in zip(grid.size, limit, strict=True))
    canvas = grid.draw([Panel(picture(200, (height, width)), "title", "text")] * (num_envs * num_views))
    assert canvas.shape == (grid.size[1], grid.size[0], 3)
    assert canvas.dtype == np.uint8


def played(match_idx, episode_return, agent_idx=0, num_steps=2):
    return Played(match_idx, agent_idx, 0, episode_return, num_steps, num_steps, {})


def test_a_panel_goes_on_with_the_next_episode_and_stands_still_after_its_last():
    stage = Stage("env", ["a"], np.zeros((3, 1), np.int64), num_envs=2, num_views=1)

    def step(greys, returns, match_idx, *episodes):
        pictures = [[picture(grey) for grey in of_view] for of_view in greys]
        moments = stage.step(pictures, returns, np.array([0.5, -0.5]), episodes, np.array(match_idx))
        return [list(panels) for panels in moments]

    moments = step([[1, 2], [11, 12]], [1.0, 2.0], [0, 1])
    assert [[panel.picture[0, 0, 0] for panel in panels] for panels in moments] == [[1, 11], [2, 12]]
    assert moments[0][0].title == "env   episode 1 of 3"
    assert moments[0][1].text == "return 2.00   step 1   value -0.50"

    moments = step([[3], [13, 14]], [0.0, 0.0], [2, 3], played(0, 7.0), played(1, 8.0))
    assert [[panel.picture[0, 0, 0] for panel in panels] for panels in moments] == [[3, 13], [3, 14]]
    assert moments[-1][0].text.startswith("return 7.00   step 2")
    assert [panel.result for panel in moments[-1]] == [(), ("return 8.00", "2 steps")]

    moments = step([[4], [15]], [1.0, 1.0], [2, 3])
    first, second = moments[-1]
    assert (first.picture[0, 0, 0], first.title) == (4, "env   episode 3 of 3")
    assert first.text == "return 1.00   step 1   value 0.50   before 7.00"
    assert (second.picture[0, 0, 0], second.result) == (14, ("return 8.00", "2 steps"))


def test_a_result_is_shown_though_the_last_step_had_nothing_to_see():
    stage = Stage("env", ["a"], np.zeros((1, 1), np.int64), num_envs=1, num_views=1)
    list(stage.step([[picture(1)]], [1.0], np.zeros(1), [], np.array([0])))
    (panels,) = stage.step([[]], [0.0], np.zeros(1), [played(0, 5.0)], np.array([1]))
    assert (panels[0].picture[0, 0, 0], panels[0].result) == (1, ("return 5.00", "2 steps"))


def test_the_agents_of_a_match_are_named_by_their_policies():
    lineups = np.array([[0, 1], [1, 0]])
    one_view = Stage("env", ["red", "blue"], lineups, num_envs=1, num_views=1)
    ended = [played(0, 3.0), played(0, -3.0, 1)]
    panels = next(one_view.step([[picture(1)]], [1.0, -1.0], np.zeros(2), ended, np.array([1])))
    assert panels[0].title == "red vs. blue   match 1 of 2"
    assert panels[0].text.startswith("return 3.00, -3.00")
    panels = next(one_view.step([[picture(1)]], [1.0, -1.0], np.zeros(2), [], np.array([1])))
    assert panels[0].title == "blue vs. red   match 2 of 2"
    eyes = Stage("env", ["red", "blue"], lineups, num_envs=1, num_views=2)
    panels = next(eyes.step([[picture(1)], []], [0.0, 0.0], np.zeros(2), [], np.array([0])))
    assert [panel.title for panel in panels] == ["red   agent 1   match 1 of 2", "env"]  # the other is not there yet


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_video_has_the_pictures_that_it_was_shown(tmp_path, suffix):
    path = tmp_path / "folder" / f"v{suffix}"
    video = Video(path, max_s=100.0)
    video.open((64, 32), 10.0, "title")
    for grey in range(0, 250, 10):
        assert video.show(picture(grey, (32, 64)))
        assert not path.exists()
    video.finish()
    video.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    reader = imageio_ffmpeg.read_frames(path)
    assert next(reader)["source_size"] == (64, 32)
    greys = [np.frombuffer(frame, np.uint8).mean() for frame in reader]
    assert len(greys) == 25
    np.testing.assert_allclose(greys, range(0, 250, 10), atol=8)


def test_a_video_that_is_not_finished_leaves_the_earlier_one_and_one_that_cannot_be_is_a_mistake(tmp_path):
    path = tmp_path / "v.gif"
    path.write_text("earlier")
    video = Video(path, max_s=100.0)
    video.open((64, 32), 10.0, "title")
    video.show(picture(0, (32, 64)))
    video.close()
    assert [file.name for file in tmp_path.iterdir()] == ["v.gif"]
    assert path.read_text() == "earlier"
    video = Video(path, 1.0)
    video.open((64, 32), 10.0, "title")
    video.show(picture(0, (32, 64)))
    path.unlink()
    path.mkdir()  # taken meanwhile, by what no file can replace
    with pytest.raises(ValueError, match="cannot be written"):
        video.finish()
    video.close()
    assert [file.name for file in tmp_path.iterdir()] == ["v.gif"]


def test_a_disk_that_gets_full_leaves_the_earlier_video_and_is_said(tmp_path):
    path = tmp_path / "v.mp4"
    path.write_text("earlier")
    rng = np.random.default_rng(0)
    video = Video(path, 100.0)
    with full_disk(20_000):
        video.open((128, 128), 10.0, "title")

    def write():
        for _ in range(10):
            video.show(rng.integers(0, 255, (128, 128, 3), np.uint8))
        video.finish()

    with pytest.raises(ValueError, match="File too large"):
        write()
    video.close()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "earlier"


@pytest.fixture
def dummy_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


@pytest.mark.usefixtures("dummy_screen")
def test_a_window_closes_by_a_key_and_waits_in_a_pause():
    import pygame  # noqa: PLC0415  it reads the variable when it is imported

    interrupts = iter([False, False, False, False, True])
    window = Window(lambda: next(interrupts))
    window.open((64, 32), 1000.0, "title")
    assert window.show(picture(100, (32, 64)))
    assert pygame.display.get_surface().get_at((5, 5))[:3] == (100, 100, 100)
    for key in (pygame.K_SPACE, pygame.K_SPACE, pygame.K_q):
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
    assert not window.show(picture(0, (32, 64)))
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_SPACE))
    assert not window.show(picture(0, (32, 64)))  # interrupted in the pause
    window.close()
    interrupts = iter([False, False, True])
    window = Window(lambda: next(interrupts))
    window.open((64, 32), 0.1, "title")
    assert window.show(picture(100, (32, 64)))
    assert not window.show(picture(0, (32, 64)))  # which would stay for ten seconds
    window.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    train_dir = tmp_path_factory.mktemp("train_dir")
    for env in ("toy_identity", "toy_match_rps"):
        for seed in range(2):
            path = train_dir / f"{env}_{seed}"
            checkpoint.save(path / "checkpoints", untrained(env, seed=seed), 1234, keep=2)
            (path / "config.yaml").write_text(f"env: {env}\n")
    return train_dir


@pytest.fixture
def sf_enjoy(status_of, capsys):
    """A function: exit status, stdout and stderr."""
    return lambda *words: (status_of(enjoy.main, *words), *capsys.readouterr())


def test_the_command_writes_a_video_and_says_how_each_episode_went(runs, tmp_path, sf_enjoy):
    path = tmp_path / "v.mp4"
    status, out, err = sf_enjoy(runs / "toy_identity_0", "--episodes", 11, "--video", path)
    assert (status, err) == (0, "")
    returns = {int(i): float(r) for i, r in re.findall(r"episode (\d+): return ([-\d.]+), 8 steps", out)}
    assert sorted(returns) == list(range(1, 12))
    assert f"mean return {np.mean(list(returns.values())):.2f}" in out
    num_frames, seconds = imageio_ffmpeg.count_frames_and_secs(path)
    # Nine of eleven side by side, so two rounds; 10 a second, an episode's first picture, and 2 s for the results.
    assert num_frames == 2 * (8 + 1) + 20
    assert seconds == pytest.approx(num_frames / 10, abs=0.2)


def test_a_video_ends_with_its_time(runs, tmp_path, sf_enjoy):
    flags = ["--video", tmp_path / "v.gif", "--max_seconds", 0.5, "--fps", 10]
    status, out, _ = sf_enjoy(runs / "toy_identity_0", *flags)
    assert status == 0
    assert "--max_seconds 0.5" in out
    assert "no episode has come to its end" in out
    assert imageio_ffmpeg.count_frames_and_secs(tmp_path / "v.gif")[0] == 5


@pytest.mark.usefixtures("dummy_screen")
def test_runs_meet_in_a_window(runs, monkeypatch, sf_enjoy):
    first, second = (runs / f"toy_match_rps_{seed}" for seed in range(2))
    flags = ["--against", second, "--episodes", 2, "--speed", 100, "--fps", 60]
    monkeypatch.setattr(enjoy, "_HOLD_S", 0.1)
    status, out, err = sf_enjoy(first, *flags)
    assert (status, err) == (0, "")
    who = dict(re.findall(r"(match \d, agent \d) \((\w+)/", out))
    assert list(who.values()).count("toy_match_rps_0") == list(who.values()).count("toy_match_rps_1") == 2
    assert who["match 1, agent 1"] != who["match 1, agent 2"] == who["match 2, agent 1"]


@pytest.mark.usefixtures("dummy_screen")
def test_opponents_play_whole_teams(tmp_path, monkeypatch, sf_enjoy):
    policy = tmp_path / "policy.safetensors"
    four = {"env_kwargs": '{"num_agents": 4}', "teams": '[["agent_[03]"], ["agent_[12]"]]'}
    checkpoint.write(policy, untrained("toy_match_counting", **four))
    monkeypatch.setattr(enjoy, "_HOLD_S", 0.1)
    status, out, err = sf_enjoy(policy, "--against", "random", "--episodes", 2, "--speed", 100, "--fps", 60)
    assert (status, err) == (0, "")
    who = dict(re.findall(r"(match \d, agent \d) \((\w+)\)", out))
    by_match = [[who[f"match {match}, agent {agent}"] for agent in (1, 2, 3, 4)] for match in (1, 2)]
    assert by_match == [["policy", "random", "random", "policy"], ["random", "policy", "policy", "random"]]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--episodes", "1000000000"], "episodes is 1000000000"),
        (["--fps", "nan"], "fps is 'nan'"),
        (["--video", "v.avi"], "ends with .mp4 or .gif"),
        (["--video", "v.mp4", "--checkpoint", "best"], "no best checkpoint"),
        ([], "give --video"),
    ],
)
def test_a_wrong_flag_takes_one_sentence(runs, flags, message, monkeypatch, sf_enjoy):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    status, _, err = sf_enjoy(runs / "toy_identity_0", *flags)
    assert status == 2
    assert message in " ".join(err.split())


def test_a_video_that_cannot_be_written_is_refused_before_anything_is_played(runs, tmp_path, monkeypatch, sf_enjoy):
    (tmp_path / "file").touch()
    monkeypatch.setattr(contestants, "find_contest", None)
    (tmp_path / "folder.mp4").mkdir()
    for path in (tmp_path / "folder.mp4", tmp_path / "file" / "v.mp4", f"{300 * 'a'}.mp4"):
        status, out, err = sf_enjoy(runs / "toy_identity_0", "--video", path)
        assert (status, out) == (2, "")
        assert "--video" in err


def test_ctrl_c_ends_the_play_at_the_next_picture_and_the_video_is_finished(runs, tmp_path, monkeypatch, sf_enjoy):
    shown = []

    def show(video, picture):
        shown.append(picture)
        if len(shown) == 20:
            signal.raise_signal(signal.SIGINT)
        return real(video, picture)

    real = Video.show
    monkeypatch.setattr(Video, "show", show)
    path = tmp_path / "v.mp4"
    flags = ["--video", path, "--speed", "0.01", "--fps", "240"]  # thousands of pictures a step
    status, out, err = sf_enjoy(runs / "toy_identity_0", *flags)
    assert (status, err, len(shown)) == (128 + signal.SIGINT, "", 20)
    assert "no episode has come to its end" in out
    assert imageio_ffmpeg.count_frames_and_secs(path)[0] == 20


def test_ctrl_c_before_the_play_ends_the_command_at_once(runs, tmp_path, monkeypatch, sf_enjoy):
    monkeypatch.setattr(contestants, "find_contest", lambda *_: signal.raise_signal(signal.SIGINT))
    status, out, err = sf_enjoy(runs / "toy_identity_0", "--video", tmp_path / "v.mp4")
    assert (status, out, err) == (128 + signal.SIGINT, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_video_needs_no_screen_and_so_none_is_looked_for(tmp_path, monkeypatch, sf_enjoy):
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    drivers = []

    def make():
        drivers.append(os.environ.get("SDL_VIDEODRIVER"))
        return gym.make("CartPole-v1", render_mode="rgb_array")

    envs.register_env("looking", make)
    checkpoint.save(tmp_path / "run" / "checkpoints", untrained("looking"), 1234, keep=2)
    (tmp_path / "run" / "config.yaml").write_text("env: looking\n")
    drivers.clear()
    flags = ["--episodes", 1, "--video", tmp_path / "v.mp4", "--max_seconds", 0.1]
    status, _, err = sf_enjoy(tmp_path / "run", *flags)
    assert (status, err) == (0, "")
    assert {*drivers} == {"dummy"}
    assert "SDL_VIDEODRIVER" not in os.environ


def test_a_video_is_where_the_caller_was_whatever_the_environment_does(tmp_path, monkeypatch, sf_enjoy):
    monkeypatch.chdir(tmp_path)
    envs.register_env("moving", Moving)
    checkpoint.save(Path("run/checkpoints").absolute(), untrained("moving"), 1234, keep=2)
    Path("run/config.yaml").write_text("env: moving\n")
    status, out, err = sf_enjoy("run", "--episodes", 1, "--video", "v.mp4")
    assert (status, err) == (0, "")
    assert "video: v.mp4" in out
    assert (tmp_path / "v.mp4").is_file()
    assert Path.cwd() == tmp_path
