"""How many threads a learner takes whose steps are a program, over simulated windows."""

import pytest
import torch

from sf.learner.gradients.threads import Threads


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
