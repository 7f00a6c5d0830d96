"""Text files: what is written is whole, readable by every parser, and never goes through a link."""

from __future__ import annotations

import json
import math

import pytest

from sf.config import Config
from sf.storage import text_files
from sf.storage.run_dir import RunDir
from sf.storage.run_lock import held
from sf.storage.run_log import RunLog
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.launchers.local import LocalLauncher
from sf.tools.sweep.launchers.training_job import TrainingJob
from sf.tools.sweep.sweep_dir import make_directory

NAN, INF = math.nan, math.inf


def strictly(text):
    """As a parser that keeps to the standard: Python's own reads NaN, and halves of a character."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    value = json.loads(text, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (
            {"a": NAN, "b": [INF, -INF, 1.5], "c": ({"d": NAN},)},
            {"a": None, "b": [None, None, 1.5], "c": [{"d": None}]},
        ),
        ({"text": "a\udcffb", "\ud800": 1}, {"text": "a\\udcffb", "\\ud800": 1}),
        ([1, True, None, "NaN", 10**20], [1, True, None, "NaN", 10**20]),
    ],
)
def test_what_json_has_no_word_for_is_null_and_text_can_be_encoded(value, read):
    assert strictly(text_files.dumps(value)) == read
    assert strictly(text_files.dumps(value, indent=2)) == read


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_the_last_lines_are_those_of_the_whole_file(tmp_path, monkeypatch, block):
    monkeypatch.setattr(text_files, "_BLOCK", block)
    path = tmp_path / "lines"
    for text in (b"", b"\n", b"a", b"a\n", b"a\nb", b"one\ntwo\nthree\n", b"one\ntwo\nthree\nfour", b"\n\n\n\n"):
        path.write_bytes(text)
        for num_lines in (1, 2, 3, 9):
            assert text_files.last_lines(path, num_lines) == text.split(b"\n")[-num_lines:]


def test_a_long_file_is_read_from_its_end(tmp_path):
    path = tmp_path / "lines"
    with path.open("wb") as file:
        file.truncate(2**36)  # zeros that take no room
        file.seek(0, 2)
        file.write(b"\nlast but one\nlast\n")
    assert text_files.last_lines(path, 3) == [b"last but one", b"last", b""]


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "precious"
    path.write_text("years of work")
    yield path
    assert path.read_text() == "years of work"


def test_a_run_with_a_link_among_its_files_is_refused(tmp_path, target):
    run_dir, config = RunDir.at(str(tmp_path), "toy_bandit"), Config().replace(env="toy_bandit")
    run_dir.prepare(config)
    for name in ("metrics.jsonl", "run.log", "evaluations.jsonl", "summary.json", "config.yaml"):
        link = run_dir.path / name
        link.symlink_to(run_dir.config.rename(tmp_path / name) if name == "config.yaml" else target)
        with pytest.raises(ValueError, match=f"{name} is a link"):
            run_dir.prepare(config)
        link.unlink()
    (tmp_path / "config.yaml").rename(run_dir.config)
    (tmp_path / ".run.lock").symlink_to(target)
    with pytest.raises(ValueError, match=r"\.run\.lock is a link"), held(tmp_path / "run"):
        pass
    run_dir.checkpoints.rmdir()
    (tmp_path / "large_disk").mkdir()
    run_dir.checkpoints.symlink_to(tmp_path / "large_disk")  # a folder may be one
    run_dir.prepare(config)


def test_a_link_that_appears_later_is_not_written_through(tmp_path, target):
    for name in ("metrics.jsonl", "run.log"):
        (tmp_path / name).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        text_files.append(tmp_path / "metrics.jsonl", b"{}\n")
    RunLog(tmp_path / "run.log").write("a line")


def test_a_sweep_writes_into_no_link_in_the_place_of_a_log(tmp_path, target):
    run = SweepRun("seed=0", {}, 0, {"env": "toy_bandit", "num_workers": 1})
    launcher = LocalLauncher([Config().replace(env="toy_bandit", num_workers=1, device="cpu")], 1)
    launcher.open(tmp_path, 1, print)
    launcher.log(run).symlink_to(target)
    job = TrainingJob(["true"], launcher.log(run), tmp_path, 0)
    for start in (lambda: launcher.start(run), job):
        with pytest.raises(OSError, match="symbolic links"):
            start()
    with pytest.raises(ValueError, match=r"seed=0\.log is a link"):
        make_directory(tmp_path)
