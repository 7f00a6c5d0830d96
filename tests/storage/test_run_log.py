"""run.log: each line with its time, whatever happens to the disk."""

import re
import shutil

import pytest
from full_disk import full_disk

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
