"""Weights between a learner and policy workers: whole, of the version they bear, named only when they are there."""

import multiprocessing
import threading
from multiprocessing import reduction

import pytest
import torch
from halfway import Accesses, HalfwayArray
from late import late_gpu

from sf.shared import weights as weights_module
from sf.shared.weights import PolicyWorkers, SharedWeights, SharedWeightsSpec
from sf.system.processes.child import FinalError

NUM_WEIGHTS = 5


def spec_on(device):
    return SharedWeightsSpec.allocate(device, NUM_WEIGHTS)


def weights(version, num_weights=NUM_WEIGHTS):
    return torch.full((num_weights,), float(version))


@pytest.fixture
def late(monkeypatch):
    gpu = late_gpu()
    monkeypatch.setattr(weights_module, "gpu", gpu)
    gpu.take("cuda:0")
    return gpu


def attached(memory, spec):
    """As a policy worker sees what the learner's memory shares."""
    theirs, ours = multiprocessing.Pipe()
    sharing = threading.Thread(target=lambda: (weights_module.gpu.take(spec.device), memory.share(theirs)))
    sharing.start()
    found = SharedWeights.attach(spec, ours)
    sharing.join()
    return found


def test_a_policy_worker_reads_what_was_published_last():
    spec = spec_on("cpu")
    memory = SharedWeights.create(spec)
    reader, out = attached(memory, spec), torch.empty(NUM_WEIGHTS + 1)
    for version in range(1, 6):
        memory.publish(weights(version), version)
        assert reader.latest_version == version
        assert reader.read(out) == version
        assert out[:-1].tolist() == weights(version).tolist()


def watched_copies(monkeypatch, before_the_first=lambda: None, after_the_first=lambda: None):
    """A list that grows with each copy of weights. The functions are called around the first, and copy unseen."""
    copy, copies = weights_module.gpu.copy, []

    def unseen(function):
        with monkeypatch.context() as patch:
            patch.setattr(weights_module.gpu, "copy", copy)
            function()

    def watched(*args):
        is_first = not copies
        if is_first:
            unseen(before_the_first)
        copies.append(copy(*args))
        if is_first:
            unseen(after_the_first)
        return copies[-1]

    monkeypatch.setattr(weights_module.gpu, "copy", watched)
    return copies


@pytest.mark.parametrize(("num_published", "num_reads"), [(2, 1), (3, 2)])
def test_what_is_read_stays_until_the_third_publication_after_it(num_published, num_reads, monkeypatch):
    spec = spec_on("cpu")
    memory = SharedWeights.create(spec)
    memory.publish(weights(1), 1)
    reader, out = attached(memory, spec), torch.empty(NUM_WEIGHTS + 1)

    def publish():
        for version in range(2, 2 + num_published):
            memory.publish(weights(version), version)

    copies = watched_copies(monkeypatch, after_the_first=publish)
    version = reader.read(out)
    assert len(copies) == num_reads
    assert version == (1 if num_reads == 1 else 1 + num_published)
    assert out[:-1].tolist() == weights(version).tolist()


class InTheMiddleError(Exception):
    pass


def begin_publication(memory, version, monkeypatch):
    """As a learner that has written half of the weights."""

    def copy_half(to, source, device):
        to[: NUM_WEIGHTS // 2] = source[: NUM_WEIGHTS // 2]
        raise InTheMiddleError

    with monkeypatch.context() as patch:
        patch.setattr(weights_module.gpu, "copy", copy_half)
        with pytest.raises(InTheMiddleError):
            memory.publish(weights(version), version)


def test_a_copy_that_is_being_written_anew_is_not_taken(monkeypatch):
    spec = spec_on("cpu")
    memory = SharedWeights.create(spec)
    memory.publish(weights(1), 1)
    reader, out = attached(memory, spec), torch.empty(NUM_WEIGHTS + 1)

    def publish():
        for version in (2, 3):
            memory.publish(weights(version), version)
        begin_publication(memory, 4, monkeypatch)

    copies = watched_copies(monkeypatch, before_the_first=publish)
    assert reader.read(out) == 3
    assert out[:-1].tolist() == weights(3).tolist()
    assert len(copies) == 2


def test_a_reader_who_comes_late_again_and_again_does_not_take_it_for_memory_of_others(monkeypatch):
    spec = spec_on("cpu")
    memory = SharedWeights.create(spec)
    memory.publish(weights(1), 1)
    reader, out, latest = attached(memory, spec), torch.empty(NUM_WEIGHTS + 1), [memory._latest[0]] * 5
    for version in (2, 3):
        memory.publish(weights(version), version)
    begin_publication(memory, 4, monkeypatch)  # where the first weights were
    latest.append(memory._latest[0])
    monkeypatch.setattr(reader, "_latest", Reads(latest))
    assert reader.read(out) == 3
    assert out[:-1].tolist() == weights(3).tolist()


class Reads:
    """A table of one number, and what each look at it finds."""

    def __init__(self, found):
        self._found = iter(found)

    def __getitem__(self, idx):
        return next(self._found)


def test_on_a_gpu_weights_are_named_only_when_they_are_there(late):
    spec = spec_on("cuda:0")
    memory = SharedWeights.create(spec)
    memory.publish(weights(1), 1)
    memory.flush()
    reader, out = attached(memory, spec), torch.empty(NUM_WEIGHTS + 1)
    for version in range(2, 7):
        memory.publish(weights(version), version)
        assert reader.latest_version == version - 1
        assert reader.read(out) == version - 1
        assert out[:-1].tolist() == weights(version - 1).tolist()
    memory.flush()
    assert reader.read(out) == 6


def test_a_mapping_of_other_memory_is_found_at_the_first_read(late, monkeypatch):
    monkeypatch.setattr(late, "_FAULT", "stale")
    spec = spec_on("cuda:0")
    memory = SharedWeights.create(spec)
    memory.publish(weights(7), 7)
    memory.flush()
    with pytest.raises(FinalError, match=r"version 0 .* version 7"):
        attached(memory, spec).read(torch.empty(NUM_WEIGHTS + 1))


def test_weights_of_another_version_than_their_name_says_end_the_run():
    spec = spec_on("cpu")
    memory = SharedWeights.create(spec)
    memory.publish(weights(7), 7)
    spec.host["version"][:] = 8
    with pytest.raises(FinalError, match=r"version 7 .* version 8"):
        memory.read(torch.empty(NUM_WEIGHTS + 1))


@pytest.mark.parametrize("fault", ["allocate", "send", "map"])
def test_gpu_memory_that_cannot_be_shared_ends_the_run(fault, late, monkeypatch):
    monkeypatch.setattr(late, "_FAULT", fault)
    spec = spec_on("cuda:0")
    theirs, ours = multiprocessing.Pipe()

    def share():
        memory = SharedWeights.create(spec)
        memory.publish(weights(1), 1)
        memory.flush()
        memory.share(theirs)
        SharedWeights.attach(spec, ours)

    with pytest.raises(FinalError, match="GPU memory cannot be shared between processes"):
        share()


def test_a_reader_beside_a_writer_that_never_waits_gets_no_mixed_weights():
    num_weights, num_reads = 20_000, 1_000
    spec = SharedWeightsSpec.allocate("cpu", num_weights)
    memory = SharedWeights.create(spec)
    memory.publish(weights(1, num_weights), 1)
    has_read = multiprocessing.get_context("fork").Event()

    def write():
        torch.set_num_threads(1)
        flat, version = weights(1, num_weights), 1
        while not has_read.is_set():
            version += 1
            memory.publish(flat.fill_(version), version)

    writer = multiprocessing.get_context("fork").Process(target=write)
    writer.start()
    out, versions = torch.empty(num_weights + 1), []
    try:
        for _ in range(num_reads):
            versions.append(memory.read(out))
            assert out[:-1].min() == out[:-1].max() == versions[-1]
    finally:
        has_read.set()
        writer.join()
    assert versions == sorted(versions)


@pytest.mark.parametrize("at", range(8))
def test_at_any_moment_of_a_publication_the_latest_version_is_one_that_can_be_read(at):
    spec = spec_on("cpu")
    memory = SharedWeights.create(spec)
    memory.publish(weights(1), 1)
    reader, out, found = attached(memory, spec), torch.empty(NUM_WEIGHTS + 1), []

    def look():
        found.append(reader.latest_version)
        assert reader.read(out) == found[-1]
        assert out[:-1].tolist() == weights(found[-1]).tolist()

    accesses = Accesses({at: look})
    memory._version = HalfwayArray(memory._version, accesses)
    memory._latest = HalfwayArray(memory._latest, accesses)
    memory.publish(weights(2), 2)
    look()
    assert set(found) <= {1, 2}
    assert found[-1] == 2


def test_policy_workers_that_have_died_or_come_later_do_not_keep_others_from_their_weights():
    spec = spec_on("cpu")
    memory = SharedWeights.create(spec)
    memory.publish(weights(1), 1)
    ours, announcements = multiprocessing.Pipe()
    PolicyWorkers(memory, announcements, reports=None)
    for is_alive in (True, False, True):
        its_end, learners_end = multiprocessing.Pipe()
        if not is_alive:
            its_end.close()
        reduction.send_handle(ours, learners_end.fileno(), None)
        learners_end.close()
        if is_alive:
            assert its_end.poll(60.0)
            assert SharedWeights.attach(spec, its_end).read(torch.empty(NUM_WEIGHTS + 1)) == 1
    ours.close()
