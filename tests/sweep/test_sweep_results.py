import csv
import json

import pytest

from sf.run_dir import RunDir
from sf.sweep.grid import SweepRun
from sf.sweep.results import Result, is_done, over_seeds, points, read_result, write_csv


def make_run(seed=0, lr=0.1):
    flags = {"env": "a", "lr": lr, "train_for_env_steps": 100, "seed": seed}
    return SweepRun(f"lr={lr}_seed={seed}", {"lr": lr}, seed, flags)


def result(seed, mean_return, lr=0.1):
    return Result(make_run(seed, lr), "done", {"mean_return": mean_return, "name": "text"})


def write(run_dir, stopped_by=None, steps=100):
    run_dir.path.mkdir(exist_ok=True)
    run_dir.summary.write_text(json.dumps({"stopped_by": stopped_by, "mean_return": 3.0}))
    run_dir.config.write_text(f"env: a\ntrain_for_env_steps: {steps}\n")


def test_seeds_of_a_combination_are_taken_together():
    found = points([result(0, 1.0), result(1, 3.0), result(0, 7.0, lr=0.2)])
    assert [dict(point) for point, _ in found] == [{"lr": 0.1}, {"lr": 0.2}]
    assert over_seeds(found[0][1], "mean_return") == (2.0, pytest.approx(2**0.5), 2)
    assert over_seeds(found[1][1], "mean_return") == (7.0, 0.0, 1)
    assert over_seeds(found[0][1], "nothing") is None


def test_a_run_is_done_when_it_has_ended_by_itself_at_the_end_that_is_asked_for(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    assert not is_done(make_run(), run_dir)
    write(run_dir, stopped_by=2)
    assert not is_done(make_run(), run_dir)
    write(run_dir, steps=50)
    assert not is_done(make_run(), run_dir)
    for end in (None, "stop_at_return"):
        write(run_dir, stopped_by=end)
        assert is_done(make_run(), run_dir)


def test_a_run_that_goes_on_shows_its_last_whole_record(tmp_path):
    run_dir = RunDir(tmp_path)
    assert read_result(make_run(), run_dir, "running").record == {}
    run_dir.metrics.write_text('{"env_steps": 1}\n{"env_steps": 2}\n{"env_st')
    assert read_result(make_run(), run_dir, "running").record == {"env_steps": 2}


def test_the_table_of_results_has_a_row_a_run(tmp_path):
    write_csv(tmp_path / "results.csv", [result(0, 1.0), Result(make_run(1), "failed", {})])
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    assert [(row["lr"], row["seed"], row["state"], row["mean_return"]) for row in rows] == [
        ("0.1", "0", "done", "1.0"),
        ("0.1", "1", "failed", ""),
    ]
    assert "name" not in rows[0]
