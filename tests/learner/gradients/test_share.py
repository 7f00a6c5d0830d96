"""How much gradient workers get, over simulated windows."""

from itertools import pairwise

import pytest

from sf.learner.gradients.share import Share

MOST = 0.5
ALONE = 2  # windows before the first trial


class Machine:
    """A learner whose steps take a second alone. Each call of `window` lets one window pass."""

    def __init__(self, most=MOST):
        self.share = Share(most)

    def windows(self, count, step_s=1.0, for_workers=0.0, for_batch=0.0):
        """for_workers, for_batch: shares of the time. step_s: of a step while workers have something."""
        values = []
        for _ in range(count):
            seconds = (step_s if self.share.value else 1.0) * 4
            whole = seconds / (1 - for_batch)
            self.share.measured(4, seconds, for_workers * whole if self.share.value else 0.0, for_batch * whole)
            values.append(self.share.value)
        return values


def test_a_learner_that_never_waits_shares_its_work_in_equal_parts():
    assert Machine().windows(8, step_s=0.6) == [0] * ALONE + [MOST] * 6


def test_a_learner_that_waits_for_batches_keeps_the_cores_for_the_sampler():
    assert Machine().windows(50, step_s=0.6, for_batch=0.1) == [0] * 50


def test_nothing_is_decided_before_the_window_is_over():
    share = Share(MOST)
    for _ in range(ALONE):
        share.measured(4, 2.0, 0, 0)
    share.measured(4, 1.9, 0, 0)
    assert share.value == 0
    share.measured(4, 0.2, 0, 0)
    assert share.value == MOST


def test_a_window_without_a_step_goes_on():
    share = Share(MOST)
    share.measured(0, 3.0, 0, 0)
    assert share.value == 0


def test_workers_that_the_learner_waits_for_get_less_and_then_more_again():
    machine = Machine()
    machine.windows(ALONE + 2, step_s=0.7)
    falling = machine.windows(4, step_s=0.7, for_workers=0.1)
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == pytest.approx(MOST / 2)
    assert machine.windows(8, step_s=0.7)[-1] == MOST


def test_between_too_much_and_too_little_nothing_changes():
    machine = Machine()
    machine.windows(ALONE + 2, step_s=0.7)
    machine.windows(2, step_s=0.7, for_batch=0.2)
    assert set(machine.windows(20, step_s=0.7, for_batch=0.03)) == {machine.share.value}


def test_workers_are_let_go_once_the_sampler_needs_the_cores():
    machine = Machine()
    machine.windows(ALONE + 2, step_s=0.6)
    assert machine.windows(8, step_s=0.6, for_batch=0.2)[-1] == 0


def test_workers_that_make_steps_no_faster_are_tried_ever_more_seldom():
    machine = Machine()
    values = machine.windows(2000, step_s=1.2)
    trials = [idx for idx in range(1, len(values)) if values[idx] and not values[idx - 1]]
    gaps = [after - before for before, after in pairwise(trials)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 15
    assert gaps[-1] == gaps[-2] >= 240
    assert sum(value > 0 for value in values) < 0.04 * len(values)


def test_one_slow_window_is_no_reason():
    machine = Machine()
    machine.windows(ALONE + 3, step_s=0.6)
    for _ in range(10):
        assert machine.windows(2, step_s=1.5) == [MOST, MOST]
        assert machine.windows(1, step_s=0.6) == [MOST]


def test_after_a_success_the_next_trial_comes_as_soon_as_at_first():
    machine = Machine()
    machine.windows(400, step_s=1.2)  # of no use, many times
    while not machine.share.value:
        machine.windows(1, step_s=0.6)
    machine.windows(5, step_s=0.6)
    machine.windows(3, step_s=1.2)
    assert machine.share.value == 0
    assert machine.windows(17, step_s=0.6)[-1] == MOST


def test_a_lucky_window_before_a_trial_does_not_end_it():
    share = Share(MOST)
    for step_s in (1.0, 1.0, 0.75):
        share.measured(4, 4 * step_s, 0, 0)
    for _ in range(20):
        share.measured(4, 4 * 0.75, 0, 0)
    assert share.value == MOST
