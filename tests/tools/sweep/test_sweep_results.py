import json
import math

import pytest
import torch

from sf.config import Config
from sf.storage import checkpoint
from sf.storage.run_dir import FAILURE, RunDir
from sf.tools.sweep.grid import SweepRun
from sf.tools.sweep.results import (
    Result,
    is_done,
    over_seeds,
    points,
    read_result,
    require_same_settings,
    with_ends,
)


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
    assert over_seeds(found[0][1], "mean_return") == (2.0, pytest.approx(12.706, abs=1e-3))  # Student's t, not s
    assert over_seeds(found[1][1], "mean_return") == (7.0, pytest.approx(math.nan, nan_ok=True))
    assert over_seeds(found[0][1], "nothing") is None
    others = [Result(make_run(seed), state, {"mean_return": 99.0}) for seed, state in ((1, "stopped"), (2, "failed"))]
    assert over_seeds([result(0, 1.0), *others], "mean_return") == (1.0, pytest.approx(math.nan, nan_ok=True))


def test_a_run_is_done_when_it_has_ended_by_itself_at_the_end_that_is_asked_for(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    assert not is_done(make_run(), run_dir)
    assert with_ends(make_run(), Config(), run_dir) == make_run()  # there is no run yet
    for end in ("SIGINT", 2, FAILURE):  # a number: as earlier versions wrote it
        write(run_dir, stopped_by=end)
        assert not is_done(make_run(), run_dir)
    write(run_dir, steps=50)
    assert not is_done(make_run(), run_dir)
    for end in (None, "stop_at_return"):
        write(run_dir, stopped_by=end)
        assert is_done(make_run(), run_dir)


def test_a_run_that_was_stopped_or_killed_after_its_last_step_is_done(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    write(run_dir, stopped_by=2)
    saved = checkpoint.Checkpoint({"x": torch.zeros(1)}, {})
    checkpoint.save(run_dir.checkpoints, saved, at_env_steps=99, keep=2)
    assert not is_done(make_run(), run_dir)
    checkpoint.save(run_dir.checkpoints, saved, at_env_steps=128, keep=2)
    assert is_done(make_run(), run_dir)
    run_dir.summary.unlink()
    run_dir.metrics.write_text('{"env_steps": 128, "mean_return": 5.0}\n')
    assert is_done(make_run(), run_dir)
    assert read_result(make_run(), run_dir, "done").record["mean_return"] == 5.0


NO_STEPS = {"train_for_env_steps": None}


@pytest.mark.parametrize(
    ("today", "done", "ends"),
    [
        ({"train_for_env_steps": 100}, True, {"stop_at_return": None}),
        ({"train_for_env_steps": 50, "stop_at_return": 9.0}, True, {}),
        ({"train_for_env_frames": 1000}, False, {**NO_STEPS, "stop_at_return": None}),
        ({"train_for_seconds": 60.0, "stop_at_return": 9.0}, False, NO_STEPS),
        ({"train_for_env_steps": 200}, False, {"stop_at_return": None}),
    ],
)
def test_a_run_is_done_by_the_ends_of_today_alone_which_it_is_told(tmp_path, today, done, ends):
    run_dir = RunDir(tmp_path / "run")
    run_dir.prepare(Config().replace(env="toy_bandit", train_for_env_steps=100, stop_at_return=9.0))
    saved = checkpoint.Checkpoint({"x": torch.zeros(1)}, {})
    checkpoint.save(run_dir.checkpoints, saved, at_env_steps=100, keep=2)
    run_dir.write_summary({"stopped_by": None, "env_steps": 100, "env_frames": 100, "seconds": 1.0})
    run = with_ends(SweepRun("run", {}, 0, {"env": "toy_bandit", **today}), Config().replace(**today), run_dir)
    assert run.flags == {"env": "toy_bandit", **today, **ends}
    assert is_done(run, run_dir) == done


@pytest.mark.parametrize(
    ("flags", "differs"),
    [
        ({"gamma": 0.9}, "gamma 0.99"),
        ({"encoder_mlp_layers": [16]}, "encoder_mlp_layers 8 8"),
        ({"encoder_mlp_layers": [8, 8], "reward_scale": 1, "config": None}, None),
        ({"train_for_env_steps": 7, "device": "cpu", "num_workers": 9, "with_wandb": True}, None),
    ],
)
def test_what_was_trained_with_other_settings_is_no_run_of_this_sweep(tmp_path, flags, differs):
    run_dir = RunDir(tmp_path / "run")
    trained = {"env": "toy_bandit", "encoder_mlp_layers": (8, 8), "num_workers": 2}
    run_dir.prepare(Config().replace(**trained))
    named = {"env": "toy_bandit", **flags}
    run, today = SweepRun("run", {}, 0, named), Config().replace(**{**trained, **named})
    if differs is None:
        require_same_settings(run, today, run_dir, "rename it")
    else:
        with pytest.raises(ValueError, match=f"was trained with {differs}"):
            require_same_settings(run, today, run_dir, "rename it")


def test_a_flag_that_the_file_no_longer_names_has_changed_as_well(tmp_path):
    run_dir = RunDir(tmp_path / "run")
    run_dir.prepare(Config().replace(env="toy_bandit", learning_rate=0.05, seed=1, config="fast"))
    run = SweepRun("run", {}, 1, {"env": "toy_bandit"})
    today = Config().replace(env="toy_bandit", seed=1)
    with pytest.raises(ValueError, match=r"learning_rate 0\.05.* 0\.0001"):
        require_same_settings(run, today, run_dir, "rename it")
    require_same_settings(run, today.replace(learning_rate=0.05), run_dir, "rename it")
    with pytest.raises(ValueError, match=r"seed 1.* 2"):
        require_same_settings(run, today.replace(learning_rate=0.05, seed=2), run_dir, "rename it")


def test_a_run_that_was_resumed_for_a_moment_has_the_mean_from_before(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.prepare(Config().replace(stats_avg=10))
    run_dir.metrics.write_text('{"env_steps": 1}\n{"env_steps": 2}\n{"env_st')
    assert read_result(make_run(), run_dir, "running").record == {"env_steps": 2}
    early, late = (
        {"env_steps": s, "mean_return": r, "episodes_in_mean": n} for s, r, n in ((100, 7.0, 10), (110, 99.0, 1))
    )
    run_dir.metrics.write_text(json.dumps(early) + "\n")
    run_dir.write_summary(late)
    assert read_result(make_run(), run_dir, "done").record == {**late, "mean_return": 7.0, "episodes_in_mean": 10}
    run_dir.metrics.unlink()
    assert read_result(make_run(), run_dir, "done").record == late


def test_what_the_summary_lacks_is_the_latest_that_was_recorded_and_not_undone(tmp_path):
    run_dir = RunDir(tmp_path)
    run_dir.prepare(Config().replace(env="toy_bandit"))
    records = [
        {"env_steps": 100, "mean_return": 1.0, "eval/mean_return": 5.0},
        {"env_steps": 200, "mean_return": 2.0, "eval/mean_return": 99.0},
        {"env_steps": 150, "mean_return": 3.0, "sampled_env_frames_per_second": 7.0},  # after the checkpoint at 150
    ]
    run_dir.metrics.write_text("".join(json.dumps(record) + "\n" for record in records))
    run_dir.write_summary({"env_steps": 160, "mean_return": 4.0})
    assert read_result(make_run(), run_dir, "done").record == {
        "env_steps": 160,
        "mean_return": 4.0,
        "eval/mean_return": 5.0,
        "sampled_env_frames_per_second": 7.0,
    }
