"""Batches by recorded kernels: what they decide, and what happens where none can be recorded.

Without a GPU a stand-in calls the function again, which shows all but what CUDA does.
"""

import numpy as np
import pytest
import torch
from deciding import Deciding, vectors
from late import devices_that_record, record_on

from sf.model.acting import Acting
from sf.policy.recorded_batches import size_for
from sf.system import gpu


@pytest.fixture(params=devices_that_record())
def device(request, monkeypatch):
    record_on(request.param, monkeypatch)
    return request.param


def sizes_of(deciding):
    return sorted(deciding.decisions._queue._recorded)


def test_sizes_are_few_and_at_most_half_as_many_again():
    sizes = {num: size_for(num) for num in range(1, 2000)}
    assert all(num <= size for num, size in sizes.items())
    assert all(size <= max(8, 1.5 * num) for num, size in sizes.items())
    assert sorted(set(sizes.values()))[:6] == [8, 12, 16, 24, 32, 48]


def test_batches_of_any_size_are_decided_by_the_network_also_after_others(device, said):
    deciding = Deciding(*vectors(), device).record()
    for seed, num in enumerate((20, 3, 8, 1, 24, 3, 30)):
        deciding.assert_right(num, seed)
        with torch.no_grad():
            for weight in deciding.network.parameters():
                weight.mul_(1.1)
    assert sizes_of(deciding) == [8, 24, 32]
    assert said == []


def test_what_is_drawn_depends_on_the_seed_alone_and_changes_from_batch_to_batch(device):
    deciding = Deciding(*vectors(), device).record()
    drawn = []
    for seed in (7, 7, 8):
        deciding.decisions.generator.manual_seed(seed)
        drawn += [deciding.decide(20)[0]["continuous"].copy() for _ in range(2)]  # the first time it is recorded
    first, second, first_again, second_again, others, _ = drawn
    np.testing.assert_array_equal(first, first_again)
    np.testing.assert_array_equal(second, second_again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, others)


class ByItsSize(Acting):
    """Gives NaN for what no batch has filled, which is zero."""

    def forward(self, obs, *others):
        return super().forward(
            {key: x / x.flatten(1).norm(dim=1).view(-1, *[1] * (x.dim() - 1)) for key, x in obs.items()}, *others
        )


def test_rows_that_no_batch_has_filled_do_not_decide_whether_it_is_recorded(device, said):
    deciding = Deciding(*vectors(), device, kind=ByItsSize).record()
    deciding.decide(5)
    assert said == []
    assert sizes_of(deciding) == [8]


class Failing:
    def __init__(self, function, generator=None):
        raise RuntimeError("operation not permitted when stream is capturing\nand more")


class Differing:
    """Does once what is to be done each time."""

    def __init__(self, function, generator=None):
        function()

    def replay(self):
        pass


@pytest.mark.parametrize(
    ("recording", "why"),
    [(Failing, "(operation not permitted when stream is capturing)"), (Differing, "its results differ")],
)
def test_where_there_is_no_recording_each_kernel_is_queued_and_that_is_said_once(
    recording, why, device, monkeypatch, said
):
    monkeypatch.setattr(gpu, "Recording", recording)
    deciding = Deciding(*vectors(), device).record()
    for seed, num in enumerate((3, 20, 3)):
        deciding.assert_right(num, seed)
    assert len(said) == 1
    assert why in said[0]


def test_a_size_for_which_there_is_no_memory_runs_without_and_the_others_stay(device, monkeypatch, said):
    deciding = Deciding(*vectors(), device).record()
    deciding.assert_right(8)

    def full(function, generator):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(gpu, "Recording", full)
        deciding.assert_right(20)
    assert said == ["no memory is left on the GPU to record the policy's step for up to 24 actors"]
    for num in (20, 8, 24, 12):
        deciding.assert_right(num)
    assert sizes_of(deciding) == [8, 12, 24]
    assert deciding.decisions._queue._recorded[24] is None
    assert len(said) == 1
