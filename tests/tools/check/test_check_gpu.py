"""The probes of a GPU: each line of them runs, against one that is not there, and each notices one that is wrong."""

import multiprocessing
import threading

import fake_cuda
import pytest
import torch
from fake_cuda import FakeGpu

from sf.config import Config
from sf.tools.check import gpu, isolated
from sf.tools.check.command import needs_of
from sf.tools.check.probe import PROBES, ProbeError


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_a_gpu_that_does_what_it_should_is_described(has_bfloat16, monkeypatch):
    fake_cuda.install(monkeypatch, has_bfloat16=has_bfloat16)
    with FakeGpu():
        assert ("no bfloat16" in gpu.facts("cuda:0")) != has_bfloat16


def test_a_gpu_whose_memory_is_taken_is_noticed(monkeypatch):
    fake_cuda.install(monkeypatch, free=1 << 30)
    with FakeGpu(), pytest.raises(ProbeError, match=r"1.0 of 80.0 GiB free"):
        gpu.facts("cuda:0")


def test_a_gpu_that_was_asked_for_and_is_not_seen_fails_and_nothing_else_does(monkeypatch):
    fake_cuda.install(monkeypatch, num_gpus=0)
    monkeypatch.setattr(gpu.Path, "glob", lambda self, pattern: [])
    needs = {device: needs_of(Config().replace(device=device)) for device in ("auto", "cpu", "cuda")}
    assert gpu.seen(needs["auto"]) == "none: networks run on the CPU"
    assert "none is wanted" in gpu.seen(needs["cpu"])
    with pytest.raises(ProbeError, match="--device is cuda"):
        gpu.seen(needs["cuda"])
    monkeypatch.setattr(gpu.Path, "glob", lambda self, pattern: ["/dev/nvidia0"])
    with pytest.raises(ProbeError, match="the machine has an NVIDIA GPU"):
        gpu.seen(needs["auto"])
    assert gpu.count(needs["auto"]) == "0"


def test_memory_of_two_processes_is_tried_in_both_directions_and_over_the_death_of_a_reader():
    """With memory of the CPU, which torch shares as well; the processes and the death are real."""
    [probe] = (probe for probe in PROBES if probe.partners)
    outcome = isolated.call("it", probe, "cpu").outcome()
    assert (outcome.status, "outlives a reader that is killed" in outcome.text) == ("ok", True), outcome.text


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda memory: (0.0, 0.0), "read from 0 to 0"),
        (lambda memory: (1.0, 1.0), "the other process wrote -1"),
    ],
)
def test_memory_that_is_a_copy_is_noticed(answer, sentence):
    ours, theirs = multiprocessing.Pipe()
    memory = torch.zeros(2, 4)
    reader = threading.Thread(target=lambda: (theirs.recv(), theirs.send(answer(memory))))
    reader.start()
    with pytest.raises(ProbeError, match=sentence):
        gpu._exchange(memory, ours, 1.0)
    reader.join()


def test_a_reader_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(gpu, "_ANSWER_WITHIN_S", 0.01)
    ours, theirs = multiprocessing.Pipe()
    with pytest.raises(ProbeError, match="gave no answer within"):
        gpu._answer(ours)
    theirs.close()
    with pytest.raises(ProbeError, match="died"):
        gpu._answer(ours)
