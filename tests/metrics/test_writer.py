"""The records of a run, and that losing one costs no more than that."""

import json
import shutil

import pytest
from full_disk import full_disk
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sf.config import Config
from sf.metrics.sinks.tensorboard import TensorBoard
from sf.metrics.sinks.writer import MetricsWriter
from sf.storage.run_dir import RunDir


@pytest.fixture
def run_dir(tmp_path):
    run_dir = RunDir.at(str(tmp_path), "run")
    run_dir.prepare(Config().replace(env="toy_bandit"))
    return run_dir


def record(env_frames):
    return {"env_frames": env_frames, "train/loss": env_frames / 4, "name": "text", "mean_return": None}


def a_writer(run_dir):
    return MetricsWriter(run_dir, [TensorBoard(run_dir, Config().flat())])


def lines(run_dir):
    return [json.loads(line) for line in run_dir.metrics.read_text().splitlines()]


def curve(run_dir, tag):
    events = EventAccumulator(str(run_dir.tensorboard))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_a_record_is_a_line_and_a_point_of_every_curve(run_dir, said):
    flags = {**Config().flat(), "experiment": "caf\udce9", "train_dir": "/tmp/caf\udce9"}
    for frames in (4, 8):  # a resumed run goes on in the same files
        MetricsWriter(run_dir, [TensorBoard(run_dir, flags)]).write(record(frames))
    assert lines(run_dir) == [record(4), record(8)]
    assert curve(run_dir, "losses/total") == [(4, 1.0), (8, 2.0)]
    assert curve(run_dir, "run/env_frames") == [(4, 4.0), (8, 8.0)]
    assert said == []


def test_a_full_disk_is_said_once_and_later_records_are_whole(run_dir, said):
    writer = a_writer(run_dir)
    writer.write(record(4))
    with full_disk(run_dir.metrics.stat().st_size + 10):  # a part of a line fits
        writer.write(record(8))
        writer.write(record(12))
        writer.write_summary({"env_frames": 12, "text": "longer than what fits" * 10})
    assert len(said) == 2
    assert said[0].startswith("metrics: metrics.jsonl lacks a record (")
    assert ", and TensorBoard lacks a record (" in said[0]
    assert said[0].endswith("; training goes on, and later ones are tried again")
    assert said[1].startswith("metrics: summary.json cannot be written (")
    writer.write(record(16))
    assert lines(run_dir) == [record(4), record(16)]
    assert curve(run_dir, "losses/total") == [(4, 1.0), (16, 4.0)]
    assert not run_dir.summary.exists()
    with full_disk(0):
        writer.write(record(20))
    assert len(said) == 3


class Broken:
    """A sink on a disk of its own, which is full."""

    name = "Broken"

    def write(self, record):
        raise OSError("full")

    write_video = finish = write


def test_a_sink_that_fails_keeps_no_other_from_its_record_and_is_named_once(run_dir, said):
    writer = MetricsWriter(run_dir, [Broken(), TensorBoard(run_dir, Config().flat())])
    writer.write(record(4))
    writer.write(record(8))
    assert lines(run_dir) == [record(4), record(8)]
    assert curve(run_dir, "losses/total") == [(4, 1.0), (8, 2.0)]
    assert said == ["metrics: Broken lacks a record (full); training goes on, and later ones are tried again"]
    writer.write_evaluation({"a": 1})
    writer.write(record(12))
    assert len(said) == 1
    writer.write_summary({"env_frames": 12})
    assert said[1:] == ["metrics: Broken lacks the summary (full)"]
    assert json.loads(run_dir.summary.read_text()) == {"env_frames": 12}


def test_what_a_kill_has_left_of_a_line_costs_no_other(run_dir):
    writer = a_writer(run_dir)
    for path, write in ((run_dir.metrics, writer.write), (run_dir.evaluations, writer.write_evaluation)):
        write(record(4))
        write(record(8))
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 10)
        write(record(12))
        assert [json.loads(line) for line in path.read_text().splitlines()] == [record(4), record(12)]


def test_a_directory_that_was_removed_is_made_again_and_the_run_can_be_resumed(run_dir, said):
    writer = a_writer(run_dir)
    writer.write(record(4))
    flags = run_dir.saved_flags()
    shutil.rmtree(run_dir.path)
    writer.write(record(8))
    assert lines(run_dir) == [record(8)]
    assert curve(run_dir, "losses/total") == [(8, 2.0)]
    assert run_dir.saved_flags() == flags
    assert said == []


def test_numbers_that_are_not_finite_are_null_and_odd_names_are_written_out(run_dir):
    def refuse(constant):
        raise ValueError(f"{constant} is no JSON")

    writer = a_writer(run_dir)
    writer.write({**record(4), "mean_score": float("nan"), "best": float("-inf"), "stats/\udcff": 1.0})
    writer.write_evaluation({"statistics": {"score": {"mean": float("nan"), "all": [1.0, float("inf")]}}})
    writer.write_summary({"mean_score": float("nan"), "stats/\udcff": 1.0})
    texts = [run_dir.metrics.read_text(), run_dir.evaluations.read_text(), run_dir.summary.read_text()]
    metrics, evaluation, summary = (json.loads(text, parse_constant=refuse) for text in texts)
    assert metrics == {**record(4), "mean_score": None, "best": None, "stats/\\udcff": 1.0}
    assert evaluation == {"statistics": {"score": {"mean": None, "all": [1.0, None]}}}
    assert summary == {"mean_score": None, "stats/\\udcff": 1.0}
