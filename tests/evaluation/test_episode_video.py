"""What an evaluator films: the file, its small copy, and what is found to be wrong before the start."""

import io
import re
import subprocess
from pathlib import Path

import gymnasium as gym
import imageio_ffmpeg
import pytest
from moving_env import Moving
from PIL import Image
from untrained import untrained

from sf import envs
from sf.config import Config
from sf.envs import UsageError
from sf.evaluation.episode_video import film, require_drawable
from sf.evaluation.pictures import video as screen_video
from sf.evaluation.play.torch_policy import TorchPolicy
from sf.storage import video_files


def filmed(path, env, num_policies=1, **flags):
    policies = [TorchPolicy(untrained(env, seed), f"policy {seed}") for seed in range(num_policies)]
    config = policies[0].config.replace(video_max_seconds=2.0, **flags)
    steps = []
    return film(config, policies, num_policies - 1, path, lambda: steps.append(1)), steps


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two environments side by side."""
    return filmed(tmp_path_factory.mktemp("videos") / "video.mp4", "CartPole-v1", video_envs=2)


def described(path):
    """What ffmpeg says of a file: seconds, width, height."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    minutes, seconds = re.search(r"Duration: \d+:(\d+):([\d.]+)", said).groups()
    width, height = re.search(r"Video: h264.* (\d+)x(\d+)", said).groups()
    return 60 * int(minutes) + float(seconds), int(width), int(height)


def test_environments_are_filmed_side_by_side_until_each_has_ended_an_episode(pair):
    video, steps = pair
    assert len(video.returns) == 2
    assert not video.is_cut
    assert len(steps) >= max(video.returns)  # each step of a pole gives 1
    seconds, width, height = described(video.path)
    assert seconds < 3.1
    assert width > height
    assert width <= 640


def test_the_small_copy_is_an_animation_that_lasts_as_long_and_is_not_too_large(pair, monkeypatch):
    video, _ = pair
    animation = Image.open(io.BytesIO(video.preview))
    assert animation.size == screen_video.size_of(video.preview)
    durations_ms = []
    for n in range(animation.n_frames):
        animation.seek(n)
        durations_ms.append(animation.info["duration"])
    assert len(durations_ms) > 3
    assert sum(durations_ms) / 1000 == pytest.approx(described(video.path)[0], abs=0.5)
    monkeypatch.setattr(screen_video, "MAX_BYTES", len(video.preview) // 2)
    smaller = screen_video.preview(video.path, 1.0, 640)
    assert len(smaller) <= screen_video.MAX_BYTES
    assert screen_video.size_of(smaller) < screen_video.size_of(video.preview)


def test_a_match_is_played_by_the_policy_and_those_after_it(tmp_path):
    video, _ = filmed(tmp_path / "video.mp4", "toy_match_rps", num_policies=2)
    assert len(video.returns) == 1  # those of the other agent are the other policy's
    assert video.path.exists()


def test_a_video_is_cut_off_at_its_maximum_length(tmp_path):
    video, _ = filmed(tmp_path / "video.mp4", "MountainCar-v0")  # which nobody drives home in 2 s
    assert video.is_cut
    assert described(video.path)[0] == pytest.approx(2.0, abs=0.1)


def test_no_video_has_the_name_of_another(tmp_path):
    paths = [video_files.free_path(tmp_path / "videos", 500)]
    paths[0].touch()
    paths.append(video_files.free_path(tmp_path / "videos", 500))
    assert [path.name for path in paths] == ["video_000000000500.mp4", "video_000000000500_2.mp4"]
    assert [video_files.env_steps(path) for path in paths] == [500, 500]
    assert video_files.env_steps(tmp_path / "best.mp4") is None


class Blind(gym.Env):
    """An environment whose render() fails."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  as Gymnasium has it
    observation_space = gym.spaces.Box(0.0, 1.0, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, 0.0, True, False, {}

    def render(self):
        raise OSError("no display")


def test_an_environment_that_cannot_be_drawn_is_refused_before_the_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    envs.register_env("moving", Moving)
    for env in ("CartPole-v1", "toy_memory", "moving"):  # one renders, of the others observations are drawn
        require_drawable(Config().replace(env=env, video_every_env_steps=100))
    assert Path.cwd() == tmp_path
    with pytest.raises(UsageError, match=r"no display.*--video_every_env_steps"):
        require_drawable(Config().replace(env="test_episode_video:Blind", video_every_env_steps=100))
    monkeypatch.setattr("sf.system.machine.extras.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="imageio_ffmpeg and PIL: pip install"):
        require_drawable(Config().replace(env="toy_bandit", video_every_env_steps=100))


@pytest.mark.parametrize(
    ("flag", "value"),
    [("video_every_env_steps", -1), ("video_envs", 0), ("video_envs", 10), ("video_max_seconds", 0.0)],
)
def test_flags_out_of_their_range_are_refused(flag, value):
    with pytest.raises(ValueError, match=flag):
        Config().replace(**{flag: value})
