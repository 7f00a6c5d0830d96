import numpy as np
import pytest

from sf.counters import Counters
from sf.metrics import progress as progress_module
from sf.metrics.first_update import first_update, steps_before_update
from sf.metrics.meter import Machine
from sf.metrics.progress import Progress


@pytest.mark.parametrize(
    ("slots_needed", "num_actors", "steps"), [(32, 32, 2048), (32, 100, 6400), (33, 32, 4096), (8, 3, 576)]
)
def test_the_first_batch_is_full_when_enough_actors_have_ended_their_rollouts(slots_needed, num_actors, steps):
    assert steps_before_update(slots_needed, num_actors, rollout=64) == steps


@pytest.mark.parametrize(
    ("sampled", "rate", "sentence"),
    [
        (0, 0.0, "first update after 2,048 steps"),
        (48, 50.0, "first update after 2,048 steps, in about 40 s at this rate"),
        (2040, 50.0, "first update after 2,048 steps, in about 1 s at this rate"),
        (2048, 50.0, "first update after 2,048 steps, which are sampled: the learner trains"),
        (
            48,
            5.0,
            "first update after 2,048 steps, in about 7 min at this rate; lower --rollout and --num_batches_per_epoch "
            "for an earlier one",
        ),
    ],
)
def test_the_sentence_says_when_the_first_update_is_due(sampled, rate, sentence):
    assert first_update(2048, sampled, rate) == sentence


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
