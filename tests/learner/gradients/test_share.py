"""The share of the gradient workers, and the threads of a compiled step."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from sf.learner.gradients.share import Share, Threads

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


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def numbers(threads, count, seconds_by_threads, for_batch_s=0.0):
    """After each window of 4 steps."""
    found = []
    for _ in range(count):
        threads.measured(4, 4 * seconds_by_threads[torch.get_num_threads()], for_batch_s)
        found.append(torch.get_num_threads())
    return found


def test_a_learner_that_never_waits_takes_the_cores_that_there_are_up_to_four():
    assert numbers(Threads(most=2), 6, {1: 1.0, 2: 0.7})[-1] == 2
    torch.set_num_threads(1)
    assert numbers(Threads(most=36), 6, {1: 1.0, 4: 0.6})[-1] == 4


def test_threads_that_make_steps_no_faster_are_let_go():
    found = numbers(Threads(most=2), 12, {1: 1.0, 2: 1.3})
    assert 2 in found
    assert found[-1] == 1


def test_a_learner_that_waits_for_batches_leaves_the_cores_to_the_sampler_one_by_one():
    threads, seconds = Threads(most=4), {1: 1.0, 2: 0.8, 3: 0.7, 4: 0.6}
    assert numbers(threads, 6, seconds)[-1] == 4
    falling = numbers(threads, 12, seconds, for_batch_s=1.0)
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == 1


def test_a_learner_whose_steps_something_else_takes_gives_its_threads_back():
    threads, seconds = Threads(most=4), {1: 1.0, 4: 0.6}
    assert numbers(threads, 6, seconds)[-1] == 4
    threads.rest()
    assert torch.get_num_threads() == 1
    assert numbers(threads, 6, seconds)[-1] == 4


def test_threads_that_the_user_has_asked_for_stay():
    torch.set_num_threads(2)
    assert numbers(Threads(most=4), 6, {2: 1.0, 4: 0.6})[-1] == 4
    torch.set_num_threads(2)
    assert set(numbers(Threads(most=1), 6, {2: 1.0})) == {2}
    torch.set_num_threads(2)
    assert numbers(Threads(most=4), 12, {2: 1.0, 4: 1.0})[-1] == 2
