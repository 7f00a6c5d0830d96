"""The probes of a GPU: each line of them runs, against one that is not there, and each notices one that is wrong."""

import multiprocessing
import threading

import fake_cuda
import pytest
import torch
from fake_cuda import FakeGpu

from sf.check import gpu, gpu_memory, gpu_numbers
from sf.check.command import needs_of
from sf.check.probe import ProbeError
from sf.config import Config

SINGLE = (gpu.after_fork, gpu.facts, gpu.page_locking, gpu.streams, gpu.peers, gpu_numbers.convolution)


def shifted(tensor):
    return tensor + 1 if tensor.is_floating_point() or tensor.dtype == torch.int32 else tensor


def rounded(tensor):
    """As TF32 rounds what it multiplies."""
    return tensor.bfloat16().to(tensor.dtype)


@pytest.fixture(autouse=True)
def _precision_as_before():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


@pytest.mark.parametrize("probe", [*SINGLE, gpu_numbers.float32], ids=lambda probe: probe.__name__)
@pytest.mark.parametrize("num_gpus", [1, 2])
def test_every_probe_of_a_gpu_passes_on_one_that_does_what_it_should(probe, num_gpus, monkeypatch):
    mode = FakeGpu()
    fake_cuda.install(monkeypatch, mode, num_gpus)
    with mode:
        assert probe("cuda:0")
    assert not mode.pinned


@pytest.mark.parametrize("probe", [gpu.page_locking, gpu.peers], ids=lambda probe: probe.__name__)
def test_a_copy_with_another_content_is_noticed(probe, monkeypatch):
    mode = FakeGpu(spoil=shifted)
    fake_cuda.install(monkeypatch, mode, num_gpus=2)
    with mode, pytest.raises(ProbeError, match="has 4194304 wrong numbers of 4194304"):
        probe("cuda:0")


def test_a_copy_that_is_overtaken_by_who_waits_for_its_event_is_noticed(monkeypatch):
    mode = FakeGpu()
    fake_cuda.install(monkeypatch, mode)
    monkeypatch.setattr(gpu.gpu.CopyStream, "copy", lambda self, pairs, after: after)  # not done yet
    with mode, pytest.raises(ProbeError, match="waited for by its event has"):
        gpu.streams("cuda:0")


def test_where_memory_cannot_be_page_locked_it_is_said_whether_ordinary_copies_work(monkeypatch):
    mode = FakeGpu()
    fake_cuda.install(monkeypatch, mode, registers=False)
    with mode, pytest.raises(ProbeError, match=r"out of memory\(2\); ordinary copies work"):
        gpu.page_locking("cuda:0")


def test_the_failure_before_may_be_told_to_one_more_call_and_ordinary_copies_work_all_the_same(monkeypatch):
    told = []

    def tell_once(tensor):
        if not told:
            told.append(True)
            raise RuntimeError("CUDA error: out of memory")
        return tensor

    mode = FakeGpu(spoil=tell_once)
    fake_cuda.install(monkeypatch, mode, registers=False)
    with mode, pytest.raises(ProbeError, match="ordinary copies work"):
        gpu.page_locking("cuda:0")


@pytest.mark.parametrize(
    ("mapped", "says"),
    [
        (lambda memory, device: None, "no kernel can read"),
        (
            lambda memory, device: torch.zeros(memory.shape, dtype=torch.int32),
            "what a kernel reads in page-locked shared memory has 4194303 wrong",
        ),
    ],
)
def test_a_kernel_that_cannot_read_shared_memory_or_reads_something_else_is_noticed(mapped, says, monkeypatch):
    mode = FakeGpu()
    fake_cuda.install(monkeypatch, mode)
    monkeypatch.setattr(gpu.gpu, "mapped", mapped)
    with mode, pytest.raises(ProbeError, match=says):
        gpu.page_locking("cuda:0")


def test_tf32_is_noticed_where_float32_was_asked_for_and_borne_where_it_was_not(monkeypatch):
    mode = FakeGpu(spoil=rounded)
    fake_cuda.install(monkeypatch, mode)
    with mode, pytest.raises(ProbeError, match=r"matrix product: off by .*, and at most 3e-05 is expected"):
        gpu_numbers.float32("cuda:0")


def test_a_gpu_without_bfloat16_is_not_asked_to_convolve_in_it(monkeypatch):
    mode = FakeGpu()
    fake_cuda.install(monkeypatch, mode, has_bfloat16=False)
    with mode:
        assert "bfloat16" not in gpu_numbers.convolution("cuda:0")
        assert "no bfloat16" in gpu.facts("cuda:0")


def test_a_gpu_whose_memory_is_taken_is_noticed(monkeypatch):
    mode = FakeGpu()
    fake_cuda.install(monkeypatch, mode, free=1 << 30)
    with mode, pytest.raises(ProbeError, match=r"1.0 of 80.0 GiB free"):
        gpu.facts("cuda:0")


def test_a_gpu_that_was_asked_for_and_is_not_seen_fails_and_nothing_else_does(monkeypatch):
    fake_cuda.install(monkeypatch, FakeGpu(), num_gpus=0)
    monkeypatch.setattr(gpu.Path, "glob", lambda self, pattern: [])
    needs = {device: needs_of(Config().replace(device=device)) for device in ("auto", "cpu", "cuda")}
    assert gpu.seen(needs["auto"]) == "none: networks run on the CPU"
    assert "none is wanted" in gpu.seen(needs["cpu"])
    with pytest.raises(ProbeError, match=r"--device is cuda, and torch .* sees none"):
        gpu.seen(needs["cuda"])
    monkeypatch.setattr(gpu.Path, "glob", lambda self, pattern: ["/dev/nvidia0"])
    with pytest.raises(ProbeError, match="the machine has an NVIDIA GPU"):
        gpu.seen(needs["auto"])
    assert gpu.count(needs["auto"]) == "0"


@pytest.mark.long
def test_memory_of_two_processes_is_tried_in_both_directions_and_over_the_death_of_a_reader(monkeypatch):
    """With memory of the CPU, which torch shares as well; the processes and the death are real."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = zip(context.Pipe(), context.Pipe(), strict=True)
    readers = [context.Process(target=gpu_memory.map_and_answer, args=(end,)) for end in theirs]
    for reader in readers:
        reader.start()
    for end in theirs:
        end.close()
    monkeypatch.setattr(gpu_memory, "_ANSWER_WITHIN_S", 60.0)  # they import torch first
    assert "outlives a reader that is killed" in gpu_memory.shared("cpu", *ours)
    for end in ours:
        end.close()
    for reader in readers:
        reader.join()
    assert [reader.exitcode for reader in readers] == [-9, 0]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda memory: (0.0, 0.0), "the owner wrote 1, and the other process read from 0 to 0"),
        (lambda memory: (1.0, 1.0), "the other process wrote -1, and the owner read from 0, 0"),
    ],
)
def test_memory_that_is_a_copy_is_noticed(answer, sentence):
    ours, theirs = multiprocessing.Pipe()
    memory = torch.zeros(2, 4)
    reader = threading.Thread(target=lambda: (theirs.recv(), theirs.send(answer(memory))))
    reader.start()
    with pytest.raises(ProbeError, match=sentence):
        gpu_memory._exchange(memory, ours, 1.0)
    reader.join()


def test_a_reader_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(gpu_memory, "_ANSWER_WITHIN_S", 0.01)
    ours, theirs = multiprocessing.Pipe()
    with pytest.raises(ProbeError, match="gave no answer within"):
        gpu_memory._answer(ours)
    theirs.close()
    with pytest.raises(ProbeError, match="died"):
        gpu_memory._answer(ours)
