"""What becomes of the videos that an evaluator has made."""

from types import SimpleNamespace

import pytest

from sf.processes.reports import Filmed
from sf.run.evaluations.videos import Videos
from sf.storage import video_files
from sf.storage.run_dir import temporary_beside

GIF = b"GIF89a" + (4).to_bytes(2, "little") + (3).to_bytes(2, "little")


@pytest.fixture
def made(tmp_path):
    """Of two policies: what takes reports, what is written, and what is said."""
    done, written, said = [], [], []
    orders = SimpleNamespace(done=lambda: done.append(1))
    directories = [tmp_path / "policy_00", tmp_path / "policy_01"]
    writer = SimpleNamespace(write_video=written.append)
    return Videos(orders, directories, 4, writer, said.append), directories, written, said


def report(*paths, failures=()):
    videos = [
        {"policy_id": policy_id, "env_steps": 100, "path": str(path), "returns": [1.0, 2.0], "is_cut": False}
        for policy_id, path in enumerate(paths)
    ]
    return Filmed(videos, list(failures), env_steps=200)


def test_each_policys_video_is_handed_on_with_its_name_and_said(made):
    videos, directories, written, said = made
    paths = [video_files.free_path(directory, 100) for directory in directories]
    for path in paths:
        video_files.write_preview(path, GIF)
    videos.filmed(report(*paths))
    assert [(one.name, one.path) for one in written] == [
        (f"policy_{n:02d}/video", path) for n, path in enumerate(paths)
    ]
    assert (written[0].env_frames, written[0].gif, written[0].size) == (800, GIF, (4, 3))
    assert said[1] == f"video of policy 1 at 100 env steps: {paths[1]}, mean return 1.50"
    assert not list(directories[0].iterdir())  # the small copy is taken


def test_a_failure_is_said_once_until_a_video_succeeds(made):
    videos, *_, said = made
    for failures in (["no room"], ["no room"], [], ["no room"]):
        videos.filmed(report(failures=failures))
    assert said == ["a video is missing (no room); training goes on, and the next one is tried"] * 2


def test_what_a_dead_evaluator_was_making_is_removed_and_no_video(made):
    videos, directories, *_ = made
    whole = video_files.free_path(directories[0], 100)
    whole.touch()
    (directories[0] / ".video_000000000200.mp4.7.tmp").touch()
    video_files.write_preview(whole, GIF)
    (preview,) = directories[0].glob(".video_*.gif")
    temporary_beside(preview).touch()
    videos.remove_unfinished()
    assert list(directories[0].iterdir()) == [whole]
