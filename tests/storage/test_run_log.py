"""run.log: each line with its time, whatever happens to the disk."""

import io
import re
import shutil

import pytest
from full_disk import full_disk
from rich.console import Console

from sf.metrics.display.live import Display
from sf.metrics.display.panel import Target
from sf.metrics.progress import Outlook
from sf.storage.run_log import RunLog

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "run.log"


@pytest.fixture
def log(path):
    path.parent.mkdir()
    return RunLog(path)


def test_every_line_has_the_time_and_comes_after_those_of_earlier_starts(log, path, monkeypatch):
    log.write("learner-0: saved [a]")
    monkeypatch.chdir(path.parent.parent)
    relative = RunLog(path.relative_to(path.parent.parent))
    monkeypatch.chdir("/")  # as an environment may
    relative.write("an environment failed\nTraceback: ä \udcff")
    lines = path.read_text().splitlines()
    assert [STAMP.sub("", line) for line in lines] == [
        "learner-0: saved [a]",
        "an environment failed",
        "Traceback: ä \\udcff",
    ]
    assert [bool(STAMP.match(line)) for line in lines] == [True, True, False]


def test_a_full_disk_and_a_removed_directory_cost_the_lines_of_that_time(log, path):
    log.write("first")
    with full_disk(path.stat().st_size):
        log.write("lost")
    log.write("second")
    assert [STAMP.sub("", line) for line in path.read_text().splitlines()] == ["first", "second"]
    shutil.rmtree(path.parent)
    log.write("lost, too")
    assert not path.parent.exists()  # without a config.yaml it would be taken for something that is no run
    path.mkdir(parents=True)
    log.write("nor is a directory a log")


def test_what_ends_a_run_is_written_down_in_full_and_goes_on(log, path):
    with log.of_process():
        log.write("trains")
    with pytest.raises(KeyError), log.of_process():
        raise KeyError("the door is stuck")
    text = path.read_text()
    assert re.search(r"process \d+ begins: .*\n.*trains\n.*process \d+ ends\n.*process \d+ begins", text)
    assert "Traceback" in text
    assert text.endswith("KeyError: 'the door is stuck'\n")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_it_has_the_lines_of_records_also_where_a_panel_is_shown(log, path, is_terminal):
    record = {"env_frames": 1200, "env_frames_per_second": 10.0, "seconds": 754.0, "mean_return": 75.25}
    record |= {"env_steps": 300, "sampled_env_frames_per_second": 1.0, "episodes": 3, "mean_episode_steps": 9.0}
    shares = ("busy_share", "wait_share", "slot_wait_share")
    record |= {f"{role}/{name}": 0.5 for role in ("rollout", "policy", "learner") for name in shares}
    record |= dict.fromkeys(("restarts", "lost_episodes", "lost_frames", "env_faults"), 0)
    console = Console(file=io.StringIO(), force_terminal=is_terminal, _environ={"TERM": "xterm"})
    with Display("run", Target(), console, log=log.write) as display:
        display.show(record, Outlook(None, frames_per_second=10.0))
        display.say("learner-0: saved")
    lines = [STAMP.sub("", line) for line in path.read_text().splitlines()]
    assert lines[0].startswith("0:12:34 frames 1,200 fps 10 return 75.25")
    assert lines[1] == "learner-0: saved"
