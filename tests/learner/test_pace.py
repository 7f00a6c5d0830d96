"""When it is said that iterations take long, and how much of one is left."""

import pytest

from sf.config import LearnerConfig
from sf.learner.pace import Pace


def sentences(pace, times, begun_at=0.0):
    """What is said of an iteration whose steps are done at these times."""
    pace.begin(begun_at)
    return [said for said in (*map(pace.step, times), pace.end(times[-1])) if said is not None]


def test_a_long_iteration_is_said_after_its_second_minibatch_and_only_once():
    pace = Pace(LearnerConfig(num_epochs=10, num_batches_per_epoch=32))
    pace.begin(100.0)
    assert pace.step(100.6) is None  # the first takes longer: everything starts up
    assert pace.step(100.9) == (
        "an iteration takes about 96 s (320 minibatches of 0.3 s), and the sampler waits meanwhile: for a shorter one, "
        "lower --num_epochs or --num_batches_per_epoch or --batch_size"
    )
    assert {pace.step(100.9 + 0.3 * step) for step in range(1, 319)} == {None}
    assert pace.end(196.3) is None
    assert sentences(pace, [200.3 + 0.3 * step for step in range(320)], 200.0) == []


def test_what_is_expected_before_the_first_iteration_is_said_then_and_not_again():
    pace = Pace(LearnerConfig(num_epochs=10, num_batches_per_epoch=32))
    assert pace.warning(96.0).startswith("an iteration takes about 96 s (320 minibatches of 0.3 s)")
    assert sentences(pace, [0.3 * step for step in range(320)]) == []
    assert Pace(LearnerConfig()).warning(30.0) is None


def test_an_iteration_whose_steps_are_only_queued_is_said_when_it_is_done():
    pace = Pace(LearnerConfig(num_epochs=2))
    pace.begin(0.0)
    assert [pace.step(0.1), pace.step(0.2)] == [None, None]
    assert pace.end(50.0).startswith("an iteration takes about 50 s (2 minibatches of 25 s)")


def test_one_minibatch_that_takes_long_is_said_when_it_is_done():
    (sentence,) = sentences(Pace(LearnerConfig()), [40.0])
    assert sentence.startswith("an iteration takes about 40 s (1 minibatch of 40 s)")
    assert sentence.endswith("lower --batch_size")


def test_of_short_iterations_and_of_one_that_was_cut_nothing_is_said():
    assert sentences(Pace(LearnerConfig(num_epochs=10)), [2.0 * step for step in range(1, 11)]) == []
    assert sentences(Pace(LearnerConfig(num_epochs=10)), [40.0]) == []


def test_what_is_left_of_an_iteration_is_known_from_its_latest_step():
    pace = Pace(LearnerConfig(num_epochs=4))
    pace.begin(10.0)
    assert pace.seconds_left == 0.0  # nobody knows yet
    pace.step(12.0)
    assert pace.seconds_left == pytest.approx(6.0)
    pace.step(13.0)
    assert pace.seconds_left == pytest.approx(2.0)
    for now in (14.0, 15.0):
        pace.step(now)
    assert pace.seconds_left == 0.0
    pace.begin(20.0)
    assert pace.seconds_left == pytest.approx(4.0)
