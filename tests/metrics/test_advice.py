"""Advice during a run: about the first update, and about stale data."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from sf.config import Config
from sf.metrics import progress as progress_module
from sf.metrics.advice import FEWEST, StaleData, first_update
from sf.metrics.meter import Machine
from sf.metrics.progress import Progress
from sf.run.plan import Plan
from sf.shared.counters import Counters


@pytest.mark.parametrize(
    ("slots_needed", "num_actors", "num_workers", "steps"),
    [(32, 32, 2, 2048), (32, 100, 2, 6400), (33, 32, 2, 4096), (8, 3, 2, 576), (32, 100, 4, 2048)],
)
def test_the_first_batch_is_full_when_enough_actors_have_ended_their_rollouts(
    slots_needed, num_actors, num_workers, steps
):
    """All at once, unless there are more workers than cores."""
    config = SimpleNamespace(slots_per_iteration=slots_needed, rollout=64)
    plan = SimpleNamespace(config=config, num_policies=1, num_actors=num_actors, num_workers=num_workers, num_cores=2)
    assert Plan.num_steps_before_update.fget(plan) == steps


def test_the_display_says_when_the_first_update_is_due_until_it_has_come(monkeypatch):
    clock = iter(np.arange(100.0, 1000.0, 10.0))
    monkeypatch.setattr(progress_module.time, "perf_counter", lambda: float(next(clock)))
    counters = Counters.allocate(3)
    progress = Progress(
        counters,
        {"rollout": [0], "policy": [1], "learner": [2]},
        4,
        10,
        machine=Machine((0,)),
        num_steps_before_update=2048,
    )
    progress.record()
    assert progress.outlook().bottleneck == "starting: first update after 2,048 steps"
    for _ in range(2):
        counters.row(0).add(steps=250, rows=500)
        progress.record()
    sentence = progress.outlook().bottleneck
    assert sentence.startswith("starting: first update after 2,048 steps, in about ")
    assert sentence.count("at this rate") == 1
    progress.add_training(0, 2048, {})
    progress.record()
    assert "first update" not in progress.outlook().bottleneck
    assert "in about 40 s" in first_update(2048, 48, 50.0)


LOW, HIGH = {"effective_sample_size": FEWEST - 0.2, "lag_mean": 240.0}, {"effective_sample_size": FEWEST}


FLAGS = {"num_batches_per_epoch": 8, "num_epochs": 10}


def sentences(*seen, flags=None, has_auto_sizes=False):
    """What is said at each (seconds, metrics)."""
    stale = StaleData(Config().replace(**(flags or FLAGS)), has_auto_sizes)
    return [stale.see(now, metrics) for now, metrics in seen]


def test_it_is_said_once_when_it_has_been_low_for_a_minute():
    said = sentences((0, LOW), (30, LOW), (59, LOW), (60, LOW), (61, LOW), (200, LOW))
    assert [sentence is not None for sentence in said] == [False, False, False, True, False, False]
    assert "50%" in said[3]
    assert sentences((0, LOW), (50, HIGH), (55, LOW), (100, LOW)) == [None] * 4
    assert sentences((0, LOW), (50, HIGH), (55, LOW), (115, LOW))[-1] is not None
    assert sentences((0, {}), (100, {})) == [None, None]


def test_data_that_is_not_trained_on_is_said_though_it_has_no_effective_sample_size():
    masked = {"masked_share": 0.9, "lag_mean": 1120.0}
    assert sentences((0, masked), (30, {}), (59, masked)) == [None] * 3
    sentence = sentences((0, masked), (30, {}), (60, masked))[-1]
    words = ["90%", "--rollout auto", "fewer --num_envs_per_worker", "--max_policy_lag above 1000"]
    assert [word for word in words if word not in sentence] == []
    some = {**HIGH, "masked_share": 0.4}
    assert sentences((0, some), (60, some), (120, some)) == [None] * 3
