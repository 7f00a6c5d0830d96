"""Whatever a run writes as JSON can be read by a parser that keeps to the standard."""

import json
import math

import pytest

from sf.config import Config
from sf.metrics.sinks.writer import MetricsWriter
from sf.storage import finite_json
from sf.storage.run_dir import RunDir

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
    assert strictly(finite_json.dumps(value)) == read
    assert strictly(finite_json.dumps(value, indent=2)) == read


def test_the_files_of_a_run_with_diverged_numbers_and_odd_names_are_json(tmp_path):
    run_dir = RunDir.at(str(tmp_path), "run")
    run_dir.prepare(Config().replace(env="toy_bandit"))
    record = {"env_frames": 4, "train/loss": NAN, "mean_return": -INF, "stats/\udcff": 1.0}
    writer = MetricsWriter(run_dir, print)
    writer.write(record)
    writer.write_evaluation({"policy_id": 0, "statistics": {"return": {"mean": INF, "low": NAN}}})
    writer.write_summary(record)
    written = {"env_frames": 4, "train/loss": None, "mean_return": None, "stats/\\udcff": 1.0}
    assert strictly(run_dir.metrics.read_bytes()) == written
    assert strictly(run_dir.summary.read_bytes()) == written
    assert strictly(run_dir.evaluations.read_bytes())["statistics"] == {"return": {"mean": None, "low": None}}
